/** Explanations as JSON: what the admin server and `--json` give, and what schema/explanation.json describes. */
import { type Step, stepsOf } from "../trace/steps.ts";
import type { Given } from "./choices.ts";
import type { Outcome } from "./rehearsal.ts";

export interface Explanation {
  /** Number of the gateway's configuration; null for a file. */
  readonly generation: number | null;
  readonly outcomes: readonly ExplainedOutcome[];
}

/** What happens to the request if services respond and backends are chosen as `given`. */
export interface ExplainedOutcome {
  readonly given: Given;
  /** Share of requests that get this outcome, by the weights of backends. */
  readonly share: number;
  /** The gateway itself responds with an error, or closes the connection. */
  readonly refused: boolean;
  readonly listener?: string;
  readonly route?: string;
  readonly endpoint?: string;
  /** Of the response; absent without one. */
  readonly status?: number;
  /** As in metrics; `Upstream` if the response is the backend's. */
  readonly reason: string;
  /** As in the access log. */
  readonly error?: string;
  readonly steps: readonly Step[];
}

/** An outcome as JSON. Secrets are redacted. */
export function explained({ given, share, record = {}, events }: Outcome): ExplainedOutcome {
  const { listener, route, endpoint, status, error, reason = "Upstream" } = record;
  return {
    given,
    share,
    // A gRPC call that is refused has status 200.
    refused: status === undefined || (reason !== "Upstream" && (status >= 400 || error !== undefined)),
    ...(listener !== undefined && { listener }),
    ...(route !== undefined && { route }),
    ...(endpoint !== undefined && { endpoint }),
    ...(status !== undefined && { status }),
    reason,
    ...(error !== undefined && { error }),
    steps: stepsOf(events),
  };
}
