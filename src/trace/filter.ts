import { compileCondition, compileFunctions, type Expression, withFunctions } from "../cel/index.ts";

/** Which request a trace waits for. */
export interface TraceFilter {
  /** CEL over the request as it arrived. */
  readonly expression: string;
  /** Definitions of the functions that it may call: those of the configuration in force when the trace was asked for. */
  readonly functions: string;
}

/** Throws CelError for an expression that cannot be used. */
export function compileFilter({ expression, functions }: TraceFilter): Expression {
  return withFunctions(compileFunctions(functions), () => compileCondition(expression));
}
