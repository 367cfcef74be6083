import { parseDuration } from "../../base/durations.ts";
import { type Activation, CelDuration, type CelEnvironment, type CelValue } from "../../cel/index.ts";
import { definePolicy } from "../policy.ts";
import type { PolicyContext, PolicyHooks } from "../types.ts";
import type { Delay } from "./schema.ts";

const KIND = "delay";
/** The longest delay of a timer. */
const MAX_DELAY = 2 ** 31 - 1;

export const delay = definePolicy({
  kind: KIND,
  phases: ["route"],
  traceStage: "delay",
  prepare,
  redact: (config) => config,
});

/** Makes a request wait (reference 3.20). Throws CelError for an expression that cannot be used. */
function prepare(config: Delay, cel: CelEnvironment): () => PolicyHooks {
  const delayOf = readerOf(config.duration, cel);
  return () => ({
    onRequest(context) {
      const time = delayOf(context.variables);
      if (time <= 0) {
        context.trace?.skipped(KIND, "no delay");
        return undefined;
      }
      context.trace?.applied(KIND, { duration: `${time}ms` });
      return wait(context, time);
    },
  });
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

function wait(context: PolicyContext, time: number): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), time);
    context.onClose(() => clearTimeout(timer));
  });
}
