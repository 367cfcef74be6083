import { withDurations } from "../../base/durations.ts";
import { GatewayError } from "../../base/errors.ts";
import { type CelEnvironment, type Expression, toJson } from "../../cel/index.ts";
import { latin1 } from "../../http/h1/syntax.ts";
import type { HeaderList } from "../../http/message.ts";
import { decimal } from "../../http/message.ts";
import type { PolicyDeps } from "../deps.ts";
import { defineConditionalPolicy } from "../policy.ts";
import { type ConfigPath, PolicyError } from "../policy-error.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import type { PolicyContext, PolicyHooks } from "../types.ts";
import type { TokenBuckets } from "./buckets.ts";
import type { LocalLimit, LocalRateLimit } from "./schema.ts";

const KIND = "localRateLimit";
/** A key may come from the client: what is longer counts by its beginning. */
const MAX_KEY = 1024;

interface Limit extends LocalLimit {
  /** Name of its bucket, or the beginning of the names of its buckets. */
  readonly name: string;
  readonly expression: Expression | undefined;
}

export const localRateLimit = defineConditionalPolicy<"localRateLimit", LocalRateLimit, LocalLimit>({
  kind: KIND,
  phases: ["route"],
  traceStage: "local rate limit",
  alternatives: { refuses: true },
  prepare,
  redact,
});

function redact(config: LocalRateLimit | LocalLimit): unknown {
  return "fillInterval" in config ? withDurations(config, "fillInterval") : config.map(redact);
}

/**
 * Takes a token from the bucket of each limit; 429 with `x-ratelimit-*` and Retry-After when one is empty, else the response
 * says how the most constrained one stands (reference 3.1). An alternative is one limit. Throws for limits that cannot work.
 */
function prepare(config: LocalRateLimit | LocalLimit, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const one = "fillInterval" in config;
  const compiled = (one ? [config] : config).map((limit, i) => {
    checkLimit(one ? [] : [i], limit);
    return { ...limit, expression: limit.key === undefined ? undefined : cel.compileExpression(limit.key, "request") };
  });
  const expressions = compiled.map(({ expression }) => expression).filter((each) => each !== undefined);
  return ({ identity, buckets }) => {
    const limits = compiled.map((limit, i): Limit => ({ ...limit, name: `${identity} ${i}` }));
    return {
      onRequest: afterRequestBody(expressions, (context) => {
        takeAll(limits, buckets, context);
        return undefined;
      }),
    };
  };
}

function checkLimit(path: ConfigPath, { maxTokens, tokensPerFill, fillInterval, type }: LocalLimit): void {
  if (type === "tokens")
    throw PolicyError.at(
      [...path, "type"],
      "tokens of language models are not counted here; use requests or remove it",
    );
  if (maxTokens < tokensPerFill)
    throw PolicyError.at(
      [...path, "maxTokens"],
      `max tokens cannot be less than the refill amount, ${tokensPerFill}; raise it or lower tokensPerFill`,
    );
  if (!(fillInterval >= 1)) throw PolicyError.at([...path, "fillInterval"], "at least 1ms is needed");
}

/** Throws TG_RATE_LIMITED at the first limit that has no token; those before it have given theirs. */
function takeAll(limits: readonly Limit[], buckets: TokenBuckets, context: PolicyContext): void {
  let tightest: Limit | undefined;
  let remaining = Number.POSITIVE_INFINITY;
  let untilFill = 0;
  for (const limit of limits) {
    const admitted = buckets.take(bucketOf(limit, context), limit);
    if (!admitted) {
      context.trace?.decided(KIND, false, { allowed: false, limit: limit.maxTokens });
      throw new GatewayError("TG_RATE_LIMITED", undefined, undefined, { headers: refused(limit, buckets) });
    }
    if (buckets.remaining < remaining) {
      tightest = limit;
      ({ remaining, untilFill } = buckets);
    }
  }
  if (tightest === undefined) return;
  context.trace?.decided(KIND, true, { allowed: true, limit: tightest.maxTokens, remaining });
  context.editResponse({ action: "set", name: "x-ratelimit-limit", value: decimal(tightest.maxTokens) });
  context.editResponse({ action: "set", name: "x-ratelimit-remaining", value: decimal(remaining) });
  context.editResponse({ action: "set", name: "x-ratelimit-reset", value: latin1(seconds(untilFill)) });
}

function bucketOf({ name, expression }: Limit, context: PolicyContext): string {
  if (expression === undefined) return name;
  try {
    const value = expression.evaluate(context.variables);
    const text = typeof value === "string" ? value : JSON.stringify(toJson(value));
    return `${name} =${text.length > MAX_KEY ? text.slice(0, MAX_KEY) : text}`;
  } catch {
    return name;
  }
}

function refused({ maxTokens, tokensPerFill }: Limit, buckets: TokenBuckets): HeaderList {
  const reset = seconds(buckets.untilFill);
  return [
    ...["x-ratelimit-limit", String(maxTokens), "x-ratelimit-remaining", "0", "x-ratelimit-reset", reset],
    // What is never filled is not worth waiting for.
    ...(tokensPerFill > 0 ? ["retry-after", reset] : []),
  ];
}

/** Whole seconds, rounded up: whoever comes back then finds the bucket filled. */
function seconds(milliseconds: number): string {
  return String(Math.max(0, Math.ceil(milliseconds / 1000)));
}
