import { CelEnvironment, type Condition } from "../cel/index.ts";

/** Chooses the request that a trace waits for. */
export interface TraceFilter {
  /** Only the request with this token; undefined: every request. */
  readonly token?: string | undefined;
  /** CEL over the request as received; undefined: every request. */
  readonly expression?: string | undefined;
  /** Only a request for which this route is chosen, as in `isCalled`; undefined: every request. */
  readonly route?: string | undefined;
  /** Definitions of the functions that the expression may call: those of the configuration in effect when the trace was opened. */
  readonly functions: string;
}

/**
 * A compiled `where`: CEL over the outcome of a finished request, to search the recorder or to follow requests. Throws CelError if it does
 * not compile.
 */
export function compileWhere(where: string, functions: string): Condition {
  return CelEnvironment.defining(functions).compileCondition(where, "record");
}

/** The compiled expression of a filter, undefined without one. Throws CelError if it does not compile. */
export function compileFilter({ expression, functions }: TraceFilter): Condition | undefined {
  if (expression === undefined) return undefined;
  return CelEnvironment.defining(functions).compileCondition(expression);
}
