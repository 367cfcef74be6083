import type { Upstream } from "./upstream.ts";
import { isIdempotent } from "./upstream-call.ts";

/** Connections of a pool may all be stale, or servers may all be about to go away; after this many the call fails. */
const MAX_SENDS = 3;

/**
 * Whether a call that failed is made again without a `retry` policy, the caller having its whole body: any method when
 * the upstream did nothing with the request, idempotent methods when a pooled connection closed before it answered, probably
 * while it was idle. `sends`: how often the request was sent.
 */
export function mayResend(upstream: Upstream, method: string, answered: boolean, sends: number): boolean {
  if (answered || sends >= MAX_SENDS) return false;
  return upstream.refused || (upstream.served > 0 && isIdempotent(method));
}
