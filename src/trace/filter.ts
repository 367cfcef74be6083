import { CelEnvironment, type Condition } from "../cel/index.ts";

/** Which request a trace waits for. */
export interface TraceFilter {
  /** Only the request that carries it; undefined: any. */
  readonly token?: string | undefined;
  /** CEL over the request as it arrived; undefined: any request. */
  readonly expression?: string | undefined;
  /** Definitions of the functions that it may call: those of the configuration in force when the trace was asked for. */
  readonly functions: string;
}

/** The condition of a filter, undefined without one. Throws CelError for an expression that cannot be used. */
export function compileFilter({ expression, functions }: TraceFilter): Condition | undefined {
  if (expression === undefined) return undefined;
  return CelEnvironment.defining(functions).compileCondition(expression);
}
