import { type CelEnvironment, type Expression, toJson } from "../../cel/index.ts";
import type { PolicyContext } from "../contract/types.ts";

/** Characters of a key: clients may control it, and hashing must not cost more than the request. Longer keys are truncated. */
const MAX_KEY = 1024;

/** What a limit has instead of the text of its key; undefined = it has none. */
export interface Keyed {
  readonly expression: Expression | undefined;
}

/** The limit with its key compiled. Throws CelError for a key that does not compile. */
export function withKey<Limit extends { readonly key?: string | undefined }>(
  limit: Limit,
  cel: CelEnvironment,
): Limit & Keyed {
  return { ...limit, expression: limit.key === undefined ? undefined : cel.compileExpression(limit.key, "request") };
}

/** The expressions of the limits that have a key. */
export function keysOf(limits: readonly Keyed[]): readonly Expression[] {
  return limits.map(({ expression }) => expression).filter((each) => each !== undefined);
}

/**
 * The key by which a limit counts a request. undefined for what all requests without one share, also if the key cannot be evaluated: a client
 * must not escape the limit by making the key fail.
 */
export function limitKeyOf({ expression }: Keyed, { variables }: Pick<PolicyContext, "variables">): string | undefined {
  if (expression === undefined) return undefined;
  try {
    const value = expression.evaluate(variables);
    const text = typeof value === "string" ? value : JSON.stringify(toJson(value));
    return text.length > MAX_KEY ? text.slice(0, MAX_KEY) : text;
  } catch {
    return undefined;
  }
}
