/**
 * What policies do with CEL at run time: wait for the bodies that expressions read, evaluate named values, and turn results into
 * header values and bodies. Expressions come compiled from `prepare`; nothing here fails for a reason that loading could find.
 */
import { GatewayError } from "../../base/errors.ts";
import {
  type Activation,
  type CelEnvironment,
  type CelValue,
  type Expression,
  headerText,
  readsBody,
  type Scope,
  toBytes,
  toJson,
  toText,
} from "../../cel/index.ts";
import type { Latin1 } from "../../http/message/message.ts";
import { isFieldValue } from "../../http/message/syntax.ts";
import { type Decisions, type Told, unable } from "../contract/decisions.ts";
import type { PolicyContext } from "../contract/types.ts";

/** Which bodies expressions read. Expressions see a body only after a policy has waited for it. */
interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

/** What the expressions read, as far as their text shows it at compile time. */
export function bodyNeeds(expressions: Iterable<Expression>): BodyNeeds {
  let request = false;
  let response = false;
  for (const expression of expressions) {
    request ||= readsBody(expression, "request");
    response ||= readsBody(expression, "response");
  }
  return { request, response };
}

/** The error for a message whose body exceeds `maxBufferSize`. */
const TOO_LARGE = { request: "TG_BODY_TOO_LARGE", response: "TG_RESPONSE_TOO_LARGE" } as const;

/**
 * Waits for the whole body. A body over `maxBufferSize` ends the exchange, before any of it is read if its length is announced, because the
 * policy cannot decide or change anything without it. Otherwise padding would bypass the policy, and a message without its body would look
 * valid. Response expressions that read the request body need it buffered on the request side: later it has already been forwarded.
 */
export async function wholeBody(context: PolicyContext, side: "request" | "response"): Promise<void> {
  const { maxBufferSize: limit } = context;
  const body = side === "request" ? context.requestBody : context.responseBody;
  if ((await body.buffer(limit)) === undefined)
    throw new GatewayError(
      TOO_LARGE[side],
      `a policy reads the body, and it is longer than ${limit} bytes (maxBufferSize)`,
    );
}

/**
 * Waits for the body of a request, for policies that neither decide about it nor change it: a body that is too long is forwarded,
 * expressions cannot read it, and the trace says so.
 */
export async function bodyIfShort(
  { requestBody, maxBufferSize, trace }: PolicyContext,
  decisions: Decisions<BodyUnknown>,
): Promise<void> {
  if ((await requestBody.buffer(maxBufferSize)) === undefined)
    trace?.report(decisions, { code: "bodyUnknown", maxBufferSize });
}

/** A decision of policies that use `bodyIfShort`: expressions run without the body. */
export interface BodyUnknown {
  readonly code: "bodyUnknown";
  readonly maxBufferSize: number;
}

export function bodyUnknown({ maxBufferSize }: BodyUnknown): Told {
  return unable(`the body is unknown: it is longer than ${maxBufferSize} bytes (maxBufferSize)`);
}

/** Runs `work` after `wait` if an expression reads the request's body, otherwise at once and without a promise. */
export function afterRequestBody<Result, More extends readonly unknown[]>(
  expressions: Iterable<Expression>,
  work: (context: PolicyContext, ...more: More) => Result | Promise<Result>,
  wait: (context: PolicyContext) => Promise<void> = (context) => wholeBody(context, "request"),
): (context: PolicyContext, ...more: More) => Result | Promise<Result> {
  if (!bodyNeeds(expressions).request) return work;
  return async (context, ...more) => {
    await wait(context);
    return work(context, ...more);
  };
}

/**
 * Like `headerText`, checked. Throws an Error for control characters: a line break from a client's value would split the header
 * section (RFC 9110, section 5.5).
 */
export function sendableText(text: string): Latin1 {
  const value = headerText(text);
  if (!isFieldValue(value)) throw new Error("the value has a control character such as a line break");
  return value;
}

/** A value as a body: strings and bytes as they are, lists and maps as JSON. */
export function bodyBytes(value: CelValue): Uint8Array {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return toBytes(value);
  const json = toJson(value);
  return Buffer.from(typeof json === "string" ? json : JSON.stringify(json));
}

/** Expressions with the names of the values that they compute. */
export type NamedExpressions = readonly (readonly [name: string, expression: Expression])[];

/** Throws CelError for expressions that do not compile. */
export function compileAll(
  texts: Readonly<Record<string, string>>,
  scope: Scope,
  cel: CelEnvironment,
): NamedExpressions {
  return Object.entries(texts).map(([name, text]) => [name, cel.compileExpression(text, scope)] as const);
}

/** JSON values by name. An expression that fails is omitted, so the receiver can tell a missing value from an empty one. */
export function evaluateAll(expressions: NamedExpressions, variables: Activation): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, expression] of expressions) {
    try {
      values[name] = toJson(expression.evaluate(variables));
    } catch {
      // Omitted; see above.
    }
  }
  return values;
}

/** A value as text that is valid in a head; null is empty. Throws an Error if evaluation fails or the text is not valid. */
export function textOf(expression: Expression, variables: Activation): string {
  return sendableText(toText(expression.evaluate(variables)) ?? "");
}
