/**
 * `maxRequestBodySize` (docs/policies/max-request-body-size.md): rejects requests whose body is too long, without holding any of it.
 * In: bytes. Out: nothing, or 413; a response that has begun is cut off. Runs before every policy of the route that reads the body.
 */
import { applied, Decisions, rejected, skipped } from "../contract/decisions.ts";
import type { PolicyHooks } from "../contract/types.ts";
import { definePolicy } from "../define/policy.ts";
import type { MaxRequestBodySize } from "./schema.ts";

const KIND = "maxRequestBodySize";

type BodySizeDecision =
  | { readonly code: "noBody" }
  | { readonly code: "limits" | "exceeded"; readonly limit: number }
  | { readonly code: "announced"; readonly limit: number; readonly bytes: number };

const decisions = new Decisions<BodySizeDecision>(KIND, {
  noBody: () => skipped("the request has no body"),
  limits: ({ limit }) => applied(`the body may have up to ${limit} bytes`, { limit }),
  announced: ({ limit, bytes }) =>
    rejected(`content-length announces ${bytes} bytes, more than the limit of ${limit}`, { limit, bytes }),
  exceeded: ({ limit }) => rejected(`more than ${limit} bytes of the body have arrived`, { limit }),
});

export const maxRequestBodySize = definePolicy({
  decisions,
  kind: KIND,
  phases: ["route"],
  prepare: (limit: MaxRequestBodySize) => () => (limit === 0 ? NO_HOOKS : hooksOf(limit)),
  redact: (config) => config,
});

const NO_HOOKS: PolicyHooks = Object.freeze({});

function hooksOf(limit: number): PolicyHooks {
  return {
    onRequest(context) {
      const { requestLength: bytes, trace } = context;
      if (bytes === 0) trace?.report(decisions, { code: "noBody" });
      else if (bytes > limit) throw decisions.reject(trace, { code: "announced", limit, bytes }, "TG_BODY_TOO_LARGE");
      else {
        trace?.report(decisions, { code: "limits", limit });
        context.limitRequestBody(limit, () =>
          decisions.reject(trace, { code: "exceeded", limit }, "TG_BODY_TOO_LARGE"),
        );
      }
      return undefined;
    },
  };
}
