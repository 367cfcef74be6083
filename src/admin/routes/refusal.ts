import { NoRecord } from "../../recorder/reach.ts";
import type { ExplainRefusal } from "../../rehearsal/explanation.ts";
import { BadFacts } from "../../rehearsal/facts.ts";
import { BadConfiguration } from "../../rehearsal/question.ts";
import type { AdminAnswers } from "../plane/answers.ts";
import { answerReply, jsonReply, type PlainReply } from "../server/reply.ts";

/** The answer to a question about the configuration, or status 400 with an `ExplainRefusal` if the question is wrong. */
export async function answerOrRefusal<Endpoint extends keyof AdminAnswers>(
  endpoint: Endpoint,
  answer: Promise<AdminAnswers[Endpoint]>,
): Promise<PlainReply> {
  try {
    return answerReply(endpoint, await answer);
  } catch (error) {
    if (error instanceof BadConfiguration) return refusal({ code: "configuration", message: error.message });
    if (error instanceof NoRecord) return refusal({ code: "record", message: error.message });
    if (error instanceof BadFacts) {
      const { message, hint, about } = error;
      return refusal({ code: "question", message, hint, ...(about !== undefined && { about }) });
    }
    throw error;
  }
}

function refusal(error: ExplainRefusal["error"]): PlainReply {
  return { ...jsonReply({ error } satisfies ExplainRefusal), status: 400 };
}
