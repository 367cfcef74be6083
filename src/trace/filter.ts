import { CelEnvironment, type Condition } from "../cel/index.ts";

/** Chooses the request that a trace waits for. */
export interface TraceFilter {
  /** Only the request with this token; undefined: every request. */
  readonly token?: string | undefined;
  /** CEL over the request as received; undefined: every request. */
  readonly expression?: string | undefined;
  /** Definitions of the functions that the expression may call: those of the configuration in effect when the trace was opened. */
  readonly functions: string;
}

/**
 * The compiled text of a `where`: CEL over what a request became, for readers of the recorder and for those who follow requests. Throws
 * CelError if it does not compile.
 */
export function compileWhere(where: string, functions: string): Condition {
  return CelEnvironment.defining(functions).compileCondition(where, "record");
}

/** The compiled expression of a filter, undefined without one. Throws CelError if it does not compile. */
export function compileFilter({ expression, functions }: TraceFilter): Condition | undefined {
  if (expression === undefined) return undefined;
  return CelEnvironment.defining(functions).compileCondition(expression);
}
