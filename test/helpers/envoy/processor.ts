import { ms } from "../../../src/base/durations.ts";
import type { ExtProc, ExtProcOptions } from "../../../src/policies/ext-proc/schema.ts";
import { GrpcServer } from "../grpc-server.ts";
import { type Answer, NOTHING, PROCESS, ProcessingRequest, ProcessingResponse, type Question } from "./ext-proc.ts";

/** What a service does with a message: sends responses, with pauses of so many milliseconds, or ends the call, with an error if it fails. */
export type Reaction = readonly (Answer | number)[] | "end" | "fail";

/** UNAVAILABLE of google.rpc.Code. */
const FAILURE = { code: 14, details: "out of order" };

/**
 * A processing service that reacts to each message. `questions` are the messages so far; `cancelled` resolves when a call is
 * cancelled.
 */
export async function startProcessor(react: (question: Question) => Reaction) {
  const questions: Question[] = [];
  const cancelled = Promise.withResolvers<void>();
  const server = await GrpcServer.start({
    [PROCESS]: {
      stream(call) {
        call.on("data", async (message: Buffer) => {
          const question = ProcessingRequest.decode(message);
          questions.push(question);
          const reaction = react(question);
          if (reaction === "end") call.end();
          else if (reaction === "fail") call.emit("error", FAILURE);
          else
            for (const each of reaction) {
              if (typeof each === "number") await new Promise((resolve) => setTimeout(resolve, each));
              else call.write(ProcessingResponse.encode(each));
            }
        });
        call.on("end", () => call.end());
        call.on("cancelled", () => cancelled.resolve());
        call.on("error", () => {});
      },
    },
  });
  return Object.assign(server, { questions, cancelled: cancelled.promise });
}

/** The policy with the service on `port` of 127.0.0.1, which gets nothing but what `options` say. */
export function extProcAt(port: number, options: Partial<ExtProcOptions>, more: Partial<ExtProc> = {}): ExtProc {
  return {
    target: { type: "static", host: "127.0.0.1", port },
    failureMode: "failClosed",
    metadataContext: {},
    requestAttributes: {},
    responseAttributes: {},
    timeout: ms(5000),
    processingOptions: { ...NOTHING, ...options },
    ...more,
  };
}
