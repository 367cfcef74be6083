import { NoRecord } from "../../recorder/reach.ts";
import type { ExplainRefusal } from "../../rehearsal/explanation.ts";
import { BadFacts } from "../../rehearsal/facts.ts";
import { BadConfiguration } from "../../rehearsal/question.ts";
import { AdminBadRequest } from "../plane/plane.ts";
import { jsonReply, type PlainReply } from "../server/reply.ts";
import type { AdminCall, AdminRoute } from "./route.ts";

/** Bytes of a question, with its body or configuration. */
const MAX_QUESTION = 4 * 1024 * 1024;

export const explainRoutes: readonly AdminRoute[] = [
  {
    path: "/explain",
    methods: ["POST"],
    maxBody: MAX_QUESTION,
    summary:
      'what the gateway would do with a request, or has done; body {"request": {"url": "http://shop.example/cart"}} or {"id": "0-17"}',
    handle: explain,
  },
];

async function explain({ plane, body }: AdminCall): Promise<PlainReply> {
  let question: unknown;
  try {
    question = JSON.parse(body.toString("utf8"));
  } catch {
    throw new AdminBadRequest(`the body is not JSON; send {"request": {"url": "http://shop.example/cart"}}`);
  }
  try {
    return jsonReply(await plane.explain(question));
  } catch (error) {
    if (error instanceof BadConfiguration) return refusal({ code: "configuration", message: error.message });
    if (error instanceof NoRecord) return refusal({ code: "record", message: error.message });
    if (error instanceof BadFacts) return refusal({ code: "question", message: error.message, hint: error.hint });
    throw error;
  }
}

function refusal(error: ExplainRefusal["error"]): PlainReply {
  return { ...jsonReply({ error } satisfies ExplainRefusal), status: 400 };
}
