import assert from "node:assert/strict";
import { type Activation, CelError, type CelValue, type RequestParts, STANDARD_ENVIRONMENT } from "../index.ts";

export const REQUEST: RequestParts = {
  method: "GET",
  scheme: "http",
  authority: "a",
  path: "/",
  search: "",
  version: "HTTP/1.1",
  headers: [],
};

/** The value of an expression that may also read the response. */
export function evaluate(text: string, activation: Activation = {}): CelValue {
  return STANDARD_ENVIRONMENT.compileExpression(text, "response").evaluate(activation);
}

export function assertTrue(texts: readonly string[], activation: Activation = {}): void {
  for (const text of texts) assert.equal(evaluate(text, activation), true, text);
}

/** The error with which the evaluation fails. The expression itself must compile. */
export function failureOf(text: string, activation: Activation = {}): CelError {
  const expression = STANDARD_ENVIRONMENT.compileExpression(text, "response");
  try {
    expression.evaluate(activation);
  } catch (error) {
    assert.ok(error instanceof CelError, String(error));
    return error;
  }
  assert.fail(`${text} did not fail`);
}

/** Asserts the message of each expression that fails. */
export function assertFailures(failures: Readonly<Record<string, RegExp>>, activation: Activation = {}): void {
  for (const [text, what] of Object.entries(failures)) assert.match(failureOf(text, activation).what, what, text);
}
