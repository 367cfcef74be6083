/**
 * `directResponse`: responds to a request without a backend (docs/policies/direct-response.md). In: a status and, optionally, a
 * body and header fields, constant or CEL over the request. Out: always a reply, so it is the last policy of the request side.
 */
import { GatewayError } from "../../base/errors.ts";
import { type Activation, type CelEnvironment, type Expression, toText } from "../../cel/index.ts";
import { BODILESS, type HeaderList } from "../../http/message/message.ts";
import { applied, Decisions } from "../contract/decisions.ts";
import { fieldName, redactValues } from "../contract/header-edits.ts";
import { PolicyError } from "../contract/policy-error.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import { afterRequestBody, bodyBytes, sendableText } from "../shared/expressions.ts";
import type { DirectResponse } from "./schema.ts";

interface Field {
  readonly name: string;
  readonly expression: Expression;
}

const decisions = new Decisions<{ readonly code: "responds"; readonly status: number; readonly bytes: number }>(
  "direct_response",
  { responds: ({ status, bytes }) => applied(`responds with ${status} and ${bytes} bytes`, { status, bytes }) },
);

export const directResponse = defineConditionalPolicy({
  decisions,
  kind: "directResponse",
  phases: ["route"],
  prepare,
  redact: (config, hidden) =>
    config.headers === undefined ? config : { ...config, headers: redactValues(config.headers, hidden) },
});

/**
 * Compiles the response. No Content-Type is added: only the author knows it, and `headers` or a responseHeaderModifier can set
 * it. A header field whose expression fails is omitted; a body whose expression fails rejects with TG_FILTER_FAILED. Throws a
 * PolicyError for a status that is not final, a body where the status allows none, two bodies, and header fields that frame
 * the message; CelError for expressions that do not compile.
 */
function prepare(config: DirectResponse, cel: CelEnvironment): () => PolicyHooks {
  const { status, body = "", bodyExpression } = config;
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw PolicyError.at(["status"], `${status} is not a status from 200 to 599`);
  if (config.body !== undefined && bodyExpression !== undefined)
    throw PolicyError.at(["bodyExpression"], "the response has a body already; remove one of the two");
  if ((body.length > 0 || bodyExpression !== undefined) && BODILESS.has(status))
    throw PolicyError.at(
      [bodyExpression === undefined ? "body" : "bodyExpression"],
      `a response with status ${status} has no body; remove it or choose another status`,
    );
  const fixed = typeof body === "string" ? body : Uint8Array.from(body);
  const expression = bodyExpression === undefined ? undefined : cel.compileExpression(bodyExpression, "request");
  const fields = Object.entries(config.headers ?? {}).map(
    ([name, text]): Field => ({
      name: fieldName(["headers"], name),
      expression: cel.compileExpression(text, "request"),
    }),
  );
  const expressions = fields.map((field) => field.expression).concat(expression ?? []);
  return () => ({
    onRequest: afterRequestBody(expressions, (context) => {
      const answer = expression === undefined ? fixed : bodyOf(expression, context.variables);
      const headers = fields.length === 0 ? [] : headersOf(fields, context.variables);
      context.trace?.report(decisions, { code: "responds", status, bytes: Buffer.byteLength(answer) });
      return { status, headers, body: answer };
    }),
  });
}

/** Throws TG_FILTER_FAILED: a body without content would look like an intended one. */
function bodyOf(expression: Expression, variables: Activation): Uint8Array {
  try {
    return bodyBytes(expression.evaluate(variables));
  } catch (error) {
    throw new GatewayError("TG_FILTER_FAILED", "the body of the direct response", error);
  }
}

/** Fields with their values in UTF-8; null as a value omits the field. */
function headersOf(fields: readonly Field[], variables: Activation): HeaderList {
  const headers: HeaderList = [];
  for (const { name, expression } of fields) {
    try {
      const text = toText(expression.evaluate(variables));
      if (text !== undefined) headers.push(name, sendableText(text));
    } catch {
      // The status and body are still meaningful without this field; failing here would hide them.
    }
  }
  return headers;
}
