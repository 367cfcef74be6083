/**
 * `localRateLimit`: token buckets in memory that all workers share (docs/policies/local-rate-limit.md). In: limits, each with an
 * optional CEL key that gives every client, user or path its own bucket. Out: the request continues, and the response reports the
 * most constrained limit in `x-ratelimit-*`; or TG_RATE_LIMITED, 429. They are in `token-buckets/`.
 */
import { withDurations } from "../../base/durations.ts";
import type { CelEnvironment } from "../../cel/index.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { decimal } from "../../http/message/message.ts";
import { latin1 } from "../../http/message/syntax.ts";
import { applied, Decisions, rejected } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import { type ConfigPath, PolicyError } from "../contract/policy-error.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { type Keyed, keysOf, limitKeyOf, withKey } from "../shared/limit-key.ts";
import type { LimitBuckets } from "../token-buckets/buckets.ts";
import type { LocalLimit, LocalRateLimit } from "./schema.ts";

const KIND = "localRateLimit";

interface Limit extends LocalLimit, Keyed {
  readonly buckets: LimitBuckets;
}

type LimitDecision =
  | { readonly code: "admitted"; readonly limit: LocalLimit; readonly remaining: number }
  | { readonly code: "limited"; readonly limit: LocalLimit; readonly untilFill: number };

const decisions = new Decisions<LimitDecision>(KIND, {
  admitted: ({ limit, remaining }) =>
    applied(`${remaining} of the ${limit.maxTokens} tokens are left${bucketText(limit)}`, {
      allowed: true,
      limit: limit.maxTokens,
      remaining,
    }),
  limited: ({ limit, untilFill }) => {
    const next =
      limit.tokensPerFill === 0 ? "the bucket is never refilled" : `the bucket is refilled in ${seconds(untilFill)}s`;
    const text = `none of the ${limit.maxTokens} tokens is left${bucketText(limit)}; ${next}`;
    return rejected(text, { allowed: false, limit: limit.maxTokens });
  },
});

export const localRateLimit = defineConditionalPolicy<
  "localRateLimit",
  LocalRateLimit,
  LocalLimit,
  undefined,
  typeof decisions
>({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare,
  redact,
});

/** Not the value of the key: it may be a secret, and the trace has it among the values of the request. */
function bucketText({ key }: LocalLimit): string {
  return key === undefined ? "" : ` in the bucket of this \`${key}\``;
}

function redact(config: LocalRateLimit | LocalLimit): unknown {
  return "fillInterval" in config ? withDurations(config, "fillInterval") : config.map(redact);
}

/**
 * Compiles the keys; a conditional alternative is a single limit instead of a list. Throws a PolicyError for limits that can
 * never admit or never refill as written, CelError for keys that do not compile.
 */
function prepare(config: LocalRateLimit | LocalLimit, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const one = "fillInterval" in config;
  const compiled = (one ? [config] : config).map((limit, i) => {
    checkLimit(one ? [] : [i], limit);
    return withKey(limit, cel);
  });
  return ({ shared, buckets }) => {
    const limits = compiled.map((limit, i): Limit => ({ ...limit, buckets: buckets.of(`${shared} ${i}`) }));
    return {
      onRequest: afterRequestBody(keysOf(compiled), (context) => {
        takeAll(limits, context);
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

/**
 * Takes one token per limit. Throws TG_RATE_LIMITED at the first empty bucket, with `x-ratelimit-*` and Retry-After; tokens that
 * were taken from earlier limits are not returned, so rejected requests count too.
 */
function takeAll(limits: readonly Limit[], context: PolicyContext): void {
  let tightest: Limit | undefined;
  let remaining = Number.POSITIVE_INFINITY;
  let untilFill = 0;
  for (const limit of limits) {
    const { buckets } = limit;
    const admitted = buckets.take(limit, limitKeyOf(limit, context));
    if (!admitted) {
      const decision = { code: "limited", limit, untilFill: buckets.untilFill } as const;
      throw decisions.reject(context.trace, decision, "TG_RATE_LIMITED", { headers: rejectionFields(limit) });
    }
    if (buckets.remaining < remaining) {
      tightest = limit;
      ({ remaining, untilFill } = buckets);
    }
  }
  if (tightest === undefined) return;
  context.trace?.report(decisions, { code: "admitted", limit: tightest, remaining });
  context.editResponse({ action: "set", name: "x-ratelimit-limit", value: decimal(tightest.maxTokens) });
  context.editResponse({ action: "set", name: "x-ratelimit-remaining", value: decimal(remaining) });
  context.editResponse({ action: "set", name: "x-ratelimit-reset", value: latin1(seconds(untilFill)) });
}

/** Fields of the 429 (RFC 9110, section 10.2.3 for Retry-After). */
function rejectionFields({ maxTokens, tokensPerFill, buckets }: Limit): HeaderList {
  const reset = seconds(buckets.untilFill);
  return [
    ...["x-ratelimit-limit", String(maxTokens), "x-ratelimit-remaining", "0", "x-ratelimit-reset", reset],
    // A bucket without refill never admits this client again, so Retry-After would be wrong.
    ...(tokensPerFill > 0 ? ["retry-after", reset] : []),
  ];
}

/** Whole seconds, rounded up: a client that returns then finds the bucket refilled. */
function seconds(milliseconds: number): string {
  return String(Math.max(0, Math.ceil(milliseconds / 1000)));
}
