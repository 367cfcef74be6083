/**
 * The phase `respond`, and the responses that the gateway makes itself: a reply of a policy, or an error of the table. This is the only
 * place that makes error responses, except for requests that could not be read, to which the protocol engine responds.
 */
import { GatewayError } from "../../base/errors.ts";
import { BODILESS, decimal, type HttpResponse, type LocalReply } from "../../http/message/message.ts";
import type { ResponseSource } from "../../policies/contract/types.ts";
import { errorReply } from "../../policies/shared/rejection.ts";
import { lineOf } from "../../upstream/callouts/callout.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { WAIT } from "../exchange/phase-result.ts";

/** What a response that the gateway makes may read and set. */
export type Answering = Pick<Exchange, "call" | "deadlines" | "request" | "responseSide" | "result" | "told">;

/** Sends the response's head and the body as it arrives; the exchange continues when the end of the body has been sent. */
export function respond(exchange: Pick<Exchange, "responseSide">): typeof WAIT {
  exchange.responseSide.send();
  return WAIT;
}

/** Records the error with the decision behind it. A defect is logged with its stack instead. */
export function blame(
  exchange: Pick<Exchange, "result" | "told">,
  { code, message, cause, why, rule }: GatewayError,
): void {
  const told = exchange.told(why);
  const texts = [message, told?.text, code !== "TG_INTERNAL" && cause instanceof Error ? lineOf(cause) : undefined];
  exchange.result.blame(code, texts.filter((text) => text !== undefined).join(": "), rule, told?.route);
}

/** Replaces the response by an error or a reply of a policy. An error's `cause` goes to logs and traces only. */
export function answerInstead(exchange: Answering, answer: GatewayError | LocalReply): void {
  if (answer instanceof GatewayError) {
    blame(exchange, answer);
    const source = hasBody(answer.answer.body) ? "policy" : "gateway";
    setReply(exchange, errorReply(exchange.request, answer.answer), source);
  } else {
    exchange.result.replied(answer.reason ?? "DirectResponse");
    setReply(exchange, answer, hasBody(answer.body) ? "policy" : "gateway");
  }
}

/** Whether a policy has written the body of its response. */
function hasBody(body: string | Uint8Array | undefined): boolean {
  return body !== undefined && body.length > 0;
}

function setReply(exchange: Answering, reply: LocalReply, source: ResponseSource): void {
  exchange.deadlines.stop();
  exchange.call?.answeredInstead(exchange.result.error ?? null);
  // A service or a configuration may still give such a status a body.
  const content = BODILESS.has(reply.status) ? "" : reply.body;
  const body = typeof content === "string" ? Buffer.from(content, "utf8") : Buffer.from(content);
  const response: HttpResponse = { status: reply.status, headers: [...reply.headers] };
  // RFC 9110 8.6: not with 204; with 304 it would be the length of the client's cached response.
  if (reply.status !== 204 && reply.status !== 304) response.headers.push("content-length", decimal(body.length));
  exchange.responseSide.replace(response, body, source);
}
