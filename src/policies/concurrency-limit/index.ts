/**
 * `concurrencyLimit`: how many requests may be in progress at once (docs/policies/concurrency-limit.md). In: limits, each with an optional
 * CEL key that gives every client, user or path its own count, in memory that all workers share (`request-counts/`). Out: the request
 * continues, and counts until its exchange ends, however it ends; or TG_CONCURRENCY_LIMITED, 429.
 */
import type { CelEnvironment } from "../../cel/index.ts";
import { applied, Decisions, rejected } from "../contract/decisions.ts";
import type { PolicyDeps } from "../contract/deps.ts";
import type { PolicyContext, PolicyHooks } from "../contract/types.ts";
import { defineConditionalPolicy } from "../define/policy.ts";
import type { CountedRequest, LimitCounts } from "../request-counts/request-counts.ts";
import { afterRequestBody } from "../shared/expressions.ts";
import { type Keyed, keysOf, limitKeyOf, withKey } from "../shared/limit-key.ts";
import type { ConcurrencyLimit, ConcurrentLimit } from "./schema.ts";

const KIND = "concurrencyLimit";

interface Limit extends ConcurrentLimit, Keyed {
  readonly counts: LimitCounts;
}

type ConcurrencyDecision =
  /** `count`: requests in progress, this one included. */
  | { readonly code: "admitted"; readonly limit: ConcurrentLimit; readonly count: number }
  | { readonly code: "limited"; readonly limit: ConcurrentLimit; readonly count: number };

const decisions = new Decisions<ConcurrencyDecision>(KIND, {
  admitted: ({ limit, count }) =>
    applied(`${requestsOf(limit, count)} in progress, this one included; at most ${limit.maxRequests} may be`, {
      allowed: true,
      limit: limit.maxRequests,
      count,
    }),
  limited: ({ limit, count }) =>
    rejected(`${requestsOf(limit, count)} in progress already; at most ${limit.maxRequests} may be`, {
      allowed: false,
      limit: limit.maxRequests,
      count,
    }),
});

export const concurrencyLimit = defineConditionalPolicy<
  "concurrencyLimit",
  ConcurrencyLimit,
  ConcurrentLimit,
  undefined,
  typeof decisions
>({
  decisions,
  kind: KIND,
  phases: ["gateway", "route"],
  prepare,
  redact: (config) => config,
});

/** Not the value of the key: it may be a secret, and the trace has it among the values of the request. */
function requestsOf({ key }: ConcurrentLimit, count: number): string {
  const requests = count === 1 ? "1 request" : `${count} requests`;
  return `${requests}${key === undefined ? "" : ` of this \`${key}\``} ${count === 1 ? "is" : "are"}`;
}

/** Compiles the keys; a conditional alternative is a single limit instead of a list. Throws CelError for keys that do not compile. */
function prepare(config: ConcurrencyLimit | ConcurrentLimit, cel: CelEnvironment): (deps: PolicyDeps) => PolicyHooks {
  const compiled = ("maxRequests" in config ? [config] : config).map((limit) => withKey(limit, cel));
  return ({ shared, requestCounts }) => {
    const limits = compiled.map((limit, i): Limit => ({ ...limit, counts: requestCounts.of(`${shared} ${i}`) }));
    return {
      onRequest: afterRequestBody(keysOf(compiled), (context) => {
        begin(limits, context);
        return undefined;
      }),
    };
  };
}

/** Counts the request in every limit until its exchange ends. Throws TG_CONCURRENCY_LIMITED at the first that is reached; it then counts nowhere. */
function begin(limits: readonly Limit[], context: PolicyContext): void {
  const counted: CountedRequest[] = [];
  let tightest: Limit | undefined;
  let atTightest = 0;
  for (const limit of limits) {
    const { maxRequests, counts } = limit;
    const request = counts.begin(maxRequests, limitKeyOf(limit, context));
    const { count } = counts;
    if (request === undefined) {
      endAll(counted);
      const headers = ["x-ratelimit-limit", String(maxRequests), "x-ratelimit-remaining", "0"];
      throw decisions.reject(context.trace, { code: "limited", limit, count }, "TG_CONCURRENCY_LIMITED", { headers });
    }
    counted.push(request);
    if (tightest === undefined || maxRequests - count < tightest.maxRequests - atTightest) {
      tightest = limit;
      atTightest = count;
    }
  }
  context.onClose(() => endAll(counted));
  if (tightest !== undefined)
    context.trace?.report(decisions, { code: "admitted", limit: tightest, count: atTightest });
}

function endAll(counted: readonly CountedRequest[]): void {
  for (const request of counted) request.end();
}
