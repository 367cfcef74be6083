import { GatewayError } from "../../base/errors.ts";
import {
  type Activation,
  type CelEnvironment,
  type CelValue,
  type Expression,
  type Scope,
  toBytes,
  toJson,
  toText,
} from "../../cel/index.ts";
import { isFieldValue } from "../../http/h1/syntax.ts";
import type { Latin1 } from "../../http/message.ts";
import type { PolicyContext, RequestOutcome } from "../types.ts";

/** Which bodies expressions read: they are there only after somebody has waited for them. */
export interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

export function bodyNeeds(expressions: Iterable<Expression>): BodyNeeds {
  let request = false;
  let response = false;
  for (const { reads } of expressions) {
    request ||= reads.has("request.body") || reads.has("request.bodyPrefix");
    response ||= reads.has("response.body") || reads.has("response.bodyPrefix");
  }
  return { request, response };
}

/**
 * Waits for a body, at most `maxBufferSize` bytes of it; longer ones stay unknown to expressions, and flow on. What a
 * response's expressions read of the request has to be waited for on the request's side: later it has flown past.
 */
export function bufferBody(context: PolicyContext, side: "request" | "response"): Promise<Uint8Array | undefined> {
  return (side === "request" ? context.requestBody : context.responseBody).buffer(context.maxBufferSize);
}

/** Runs `work` once the request's body is there when one of the expressions reads it, else at once. */
export function afterRequestBody(
  expressions: Iterable<Expression>,
  work: (context: PolicyContext) => RequestOutcome,
): (context: PolicyContext) => RequestOutcome {
  if (!bodyNeeds(expressions).request) return work;
  return async (context) => {
    await bufferBody(context, "request");
    return work(context);
  };
}

/**
 * As `afterRequestBody`, for what may refuse the request. A body that is too long to be looked at ends it with
 * TG_BODY_TOO_LARGE: let through, it would get past what the expressions say about it.
 */
export function afterWholeBody(
  expressions: Iterable<Expression>,
  work: (context: PolicyContext) => RequestOutcome,
): (context: PolicyContext) => RequestOutcome {
  if (!bodyNeeds(expressions).request) return work;
  return async (context) => {
    if ((await bufferBody(context, "request")) === undefined) throw new GatewayError("TG_BODY_TOO_LARGE");
    return work(context);
  };
}

/** Text as header lists carry it: one latin1 character for each byte of its UTF-8. */
export function headerText(text: string): string {
  for (let i = 0; i < text.length; i++)
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  return text;
}

/** Text as header lists carry it, one latin1 character for each byte of its UTF-8. Throws an Error when it cannot be sent. */
export function sendableText(text: string): Latin1 {
  const value = headerText(text);
  if (!isFieldValue(value)) throw new Error("the value has a control character such as a line break");
  return value;
}

/** A value as a body: text and bytes as they are, lists and maps as JSON. */
export function bodyBytes(value: CelValue): Uint8Array {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return toBytes(value);
  const json = toJson(value);
  return Buffer.from(typeof json === "string" ? json : JSON.stringify(json));
}

/** Expressions by the name of what they give. */
export type NamedExpressions = readonly (readonly [name: string, expression: Expression])[];

/** Throws CelError for expressions that cannot be used. */
export function compileAll(
  texts: Readonly<Record<string, string>>,
  scope: Scope,
  cel: CelEnvironment,
): NamedExpressions {
  return Object.entries(texts).map(([name, text]) => [name, cel.compileExpression(text, scope)] as const);
}

/** Values as JSON has them, by name; an expression that fails is left out, so that who reads them sees that one is missing. */
export function evaluateAll(expressions: NamedExpressions, variables: Activation): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, expression] of expressions) {
    try {
      values[name] = toJson(expression.evaluate(variables));
    } catch {
      // Left out.
    }
  }
  return values;
}

/** A value as text that a head can carry. Throws an Error when it has none. */
export function textOf(expression: Expression, variables: Activation): string {
  return sendableText(toText(expression.evaluate(variables)) ?? "");
}

/**
 * `base` with other values for some variables. Those of `base` are looked up when an expression reads them, on the object
 * itself, which may keep them in private fields.
 */
export function withVariables(base: Activation, own: Partial<Activation>): Activation {
  return new Proxy(base, {
    get: (variables, name) =>
      Object.hasOwn(own, name) ? Reflect.get(own, name) : Reflect.get(variables, name, variables),
  });
}
