import { type Expression, toJson } from "../../cel/index.ts";
import type { PolicyContext } from "../contract/types.ts";

/** Characters of a key: clients may control it, and hashing must not cost more than the request. Longer keys are truncated. */
const MAX_KEY = 1024;

/**
 * The key by which a limit counts a request. undefined for what all requests without one share, also if the key cannot be evaluated: a client
 * must not escape the limit by making the key fail.
 */
export function limitKeyOf(
  expression: Expression | undefined,
  { variables }: Pick<PolicyContext, "variables">,
): string | undefined {
  if (expression === undefined) return undefined;
  try {
    const value = expression.evaluate(variables);
    const text = typeof value === "string" ? value : JSON.stringify(toJson(value));
    return text.length > MAX_KEY ? text.slice(0, MAX_KEY) : text;
  } catch {
    return undefined;
  }
}
