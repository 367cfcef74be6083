import { GatewayError } from "../../base/errors.ts";
import { type Activation, type CelEnvironment, type Expression, toText } from "../../cel/index.ts";
import type { HeaderList } from "../../http/message.ts";
import { defineConditionalPolicy } from "../policy.ts";
import { PolicyError } from "../policy-error.ts";
import { afterRequestBody, bodyBytes, sendableText } from "../shared/expressions.ts";
import { fieldName, shownValues } from "../shared/header-edits.ts";
import type { PolicyHooks } from "../types.ts";
import type { DirectResponse } from "./schema.ts";

/** Statuses whose responses end with their head (RFC 9110 15.3.5, 15.3.6, 15.4.5). */
const BODILESS = [204, 205, 304];

interface Field {
  readonly name: string;
  readonly expression: Expression;
}

export const directResponse = defineConditionalPolicy({
  kind: "directResponse",
  phases: ["route"],
  traceStage: "direct response",
  alternatives: { refuses: false },
  prepare,
  redact: (config, hidden) =>
    config.headers === undefined ? config : { ...config, headers: shownValues(config.headers, hidden) },
});

/**
 * Answers without a backend (reference 3.12). No content-type is added: `headers` or a responseHeaderModifier set the one
 * that fits. A header whose expression fails is left out; for a body that is TG_FILTER_FAILED. Throws when the status is no
 * final one or cannot have the body, for two bodies, and for headers that may not be set.
 */
function prepare(config: DirectResponse, cel: CelEnvironment): () => PolicyHooks {
  const { status, body = "", bodyExpression } = config;
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw PolicyError.at(["status"], `${status} is not a status from 200 to 599`);
  if (config.body !== undefined && bodyExpression !== undefined)
    throw PolicyError.at(["bodyExpression"], "the response has a body already; remove one of the two");
  if ((body.length > 0 || bodyExpression !== undefined) && BODILESS.includes(status))
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
      context.trace?.applied("direct_response", { status, bytes: Buffer.byteLength(answer) });
      return { status, headers, body: answer };
    }),
  });
}

function bodyOf(expression: Expression, variables: Activation): Uint8Array {
  try {
    return bodyBytes(expression.evaluate(variables));
  } catch (error) {
    throw new GatewayError("TG_FILTER_FAILED", "the body of the direct response", error);
  }
}

function headersOf(fields: readonly Field[], variables: Activation): HeaderList {
  const headers: HeaderList = [];
  for (const { name, expression } of fields) {
    try {
      const text = toText(expression.evaluate(variables));
      if (text !== undefined) headers.push(name, sendableText(text));
    } catch {
      // Without this field the answer still says what it has to.
    }
  }
  return headers;
}
