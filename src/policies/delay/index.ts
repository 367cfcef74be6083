/**
 * `delay`: holds a request for a fixed or computed time before it continues, to try out how clients and timeouts behave with a
 * slow service (docs/policies/delay.md). In: a duration, or CEL over the request. Out: nothing but time; the request is not
 * changed.
 */
import { parseDuration } from "../../base/durations.ts";
import { type Activation, CelDuration, type CelEnvironment, type CelValue, type Expression } from "../../cel/index.ts";
import { applied, Decisions, skipped } from "../contract/decisions.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import { afterRequestBody, type BodyUnknown, bodyIfShort, bodyUnknown } from "../shared/expressions.ts";
import type { Delay } from "./schema.ts";

const KIND = "delay";
/** Milliseconds, about 24.8 days: Node.js fires a timer with a longer delay after 1 ms. */
const MAX_DELAY = 2 ** 31 - 1;

type DelayDecision =
  | { readonly code: "none" | "unknown" }
  | { readonly code: "waits"; readonly time: number }
  | BodyUnknown;

const decisions = new Decisions<DelayDecision>(KIND, {
  none: () => skipped("the duration is 0 or less"),
  unknown: () => skipped("the duration cannot be computed, so there is no delay"),
  waits: ({ time }) => applied(`waits ${time}ms`, { duration: `${time}ms` }),
  bodyUnknown,
});

export const delay = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact: (config) => config,
});

/** Parses a constant or compiles the expression. Throws CelError for an expression that does not compile. */
function prepare({ duration }: Delay, cel: CelEnvironment): () => PolicyHooks {
  const fixed = parseDuration(duration);
  if (fixed !== undefined) return () => ({ onRequest: (context) => hold(context, fixed) });
  const expression = cel.compileExpression(duration, "request");
  const onRequest = afterRequestBody(
    [expression],
    (context) => hold(context, delayOf(expression, context.variables)),
    (context) => bodyIfShort(context, decisions),
  );
  return () => ({ onRequest });
}

/** `time`: milliseconds; undefined = it cannot be computed. */
function hold(context: PolicyContext, time: number | undefined): Promise<undefined> | undefined {
  if (time === undefined || time <= 0) {
    context.trace?.report(decisions, { code: time === undefined ? "unknown" : "none" });
    return undefined;
  }
  context.trace?.report(decisions, { code: "waits", time });
  return wait(context, time);
}

/** In milliseconds. An expression that fails delays nothing: a fault test must not become an outage. */
function delayOf(expression: Expression, variables: Activation): number | undefined {
  try {
    return milliseconds(expression.evaluate(variables));
  } catch {
    return undefined;
  }
}

/** Milliseconds of a CEL duration or of a number. */
function milliseconds(value: CelValue): number | undefined {
  const ms = value instanceof CelDuration ? Number(value.nanos) / 1e6 : Number(value);
  return Number.isFinite(ms) ? Math.min(ms, MAX_DELAY) : undefined;
}

/** Never settles if the exchange closes first: nothing continues then, and the timer must not keep the exchange in memory. */
function wait(context: PolicyContext, time: number): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), time);
    context.onClose(() => clearTimeout(timer));
  });
}
