import { type PlainReply, textReply } from "../../admin/server/reply.ts";
import { CliError } from "../runner/errors.ts";

/** The reply that says why there is no answer; asking again may help. */
export function unavailable(error: unknown): PlainReply {
  return textReply(503, `${problemOf(error)}\n`);
}

/** Anything thrown as lines of text, with its cause and what to do. */
export function problemOf(error: unknown): string {
  const { message, why, hint } = CliError.from(error);
  return [message, why, hint].filter((line) => line !== undefined).join("\n");
}
