import { parseDuration } from "../../base/durations.ts";
import { type Activation, CelDuration, type CelEnvironment, type CelValue } from "../../cel/index.ts";
import type { PolicyDeps } from "../deps.ts";
import type { Delay } from "../policy-set.ts";
import type { CompiledPolicy, PolicyContext } from "../types.ts";

const KIND = "delay";
/** The longest delay of a timer. */
const MAX_DELAY = 2 ** 31 - 1;

/** Makes a request wait (reference 3.20). Throws CelError for an expression that cannot be used. */
export function create(config: Delay, { cel }: PolicyDeps): CompiledPolicy {
  const delayOf = readerOf(config.duration, cel);
  return {
    kind: KIND,
    onRequest(context) {
      const delay = delayOf(context.variables);
      if (delay <= 0) {
        context.trace?.skipped(KIND, "no delay");
        return undefined;
      }
      context.trace?.applied(KIND, { duration: `${delay}ms` });
      return wait(context, delay);
    },
  };
}

function readerOf(text: string, cel: CelEnvironment): (variables: Activation) => number {
  const fixed = parseDuration(text);
  if (fixed !== undefined) return () => fixed;
  const expression = cel.compileExpression(text, "request");
  return (variables) => {
    try {
      return milliseconds(expression.evaluate(variables));
    } catch {
      return 0;
    }
  };
}

/** Of a duration, or of a number that says it; 0 for anything else. */
function milliseconds(value: CelValue): number {
  const ms = value instanceof CelDuration ? Number(value.nanos) / 1e6 : Number(value);
  return Number.isFinite(ms) ? Math.min(ms, MAX_DELAY) : 0;
}

function wait(context: PolicyContext, delay: number): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), delay);
    context.onClose(() => clearTimeout(timer));
  });
}
