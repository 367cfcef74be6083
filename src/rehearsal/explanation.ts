/** Explanations as JSON: what the admin server and `--json` give, and what schema/explanation.json describes. */
import { type Locate, withPlace } from "../base/origin.ts";
import type { RequestRecord } from "../recorder/records.ts";
import type { Step } from "../trace/steps.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { Given, Lack } from "./choices.ts";
import type { BadPart } from "./facts.ts";
import type { Outcome } from "./outcome.ts";
import type { Question } from "./question.ts";
import { treeOf } from "./tree.ts";

/** What can happen to a request. */
export interface Explained {
  readonly outcomes: readonly ExplainedOutcome[];
  /** At least this many more outcomes of services and unknown facts were not tried; absent if all were. */
  readonly omitted?: number;
  /** Only of a request that is over: what to ask to learn what would happen to such a request. Absent if its record has no whole request. */
  readonly question?: Pick<Question, "request" | "assume">;
}

export interface Explanation extends Explained {
  /** Number of the gateway's configuration in effect; null for another one. */
  readonly generation: number | null;
  /** Of the request, if it is over; its own `generation` was in effect then. */
  readonly record?: RequestRecord;
  /** How many requests with its id have records, of which `record` is the newest; absent: only this one. */
  readonly alike?: number;
}

/** Why the admin server does not explain: the body of a response with status 400. */
export interface ExplainRefusal {
  readonly error: {
    /** What is wrong: the request or what is assumed, the configuration that the question brings, or no request with its id has a record. */
    readonly code: "question" | "configuration" | "record";
    readonly message: string;
    /** What to write instead. */
    readonly hint?: string;
    /** The field of the request, or the assumption, that is wrong. */
    readonly about?: BadPart;
  };
}

/** What happens to the request if services respond and backends are chosen as `given`. */
export interface ExplainedOutcome {
  readonly given: Given;
  /** Share of requests that get this outcome, by the weights of backends. */
  readonly share: number;
  /** What is not known, though the outcome depends on it; absent if there is nothing. */
  readonly needs?: readonly Lack[];
  /** The gateway itself responds with an error, or closes the connection. */
  readonly refused: boolean;
  readonly listener?: string;
  readonly route?: string;
  readonly endpoint?: string;
  /** Of the response; absent without one, as for connections of TCP. */
  readonly status?: number;
  /** As in metrics, `Upstream` if the response is the backend's; absent for connections that end before they are one of a listener. */
  readonly reason?: string;
  /** As in the access log, without its origin, which a step has. */
  readonly error?: string;
  /**
   * Only of a request that is over: a rehearsal of what is recorded leads to another route, or another decision, so something that is not
   * recorded decided.
   */
  readonly unlike?: "route" | "decision";
  readonly steps: readonly Step[];
}

/** An outcome as JSON. Secrets are redacted. `live`: state of endpoints in a running gateway, by their keys. */
export function explained(outcome: Outcome, live: ReadonlyMap<string, EndpointStats>): ExplainedOutcome {
  const { given, share, needs, record = {} } = outcome;
  const { listener, route, endpoint, status, error, reason, protocol } = record;
  return {
    given,
    share,
    ...(needs.length > 0 && { needs }),
    refused: status === undefined ? protocol === undefined || error !== undefined : refuses(status, record),
    ...(listener !== undefined && { listener }),
    ...(route !== undefined && { route }),
    ...(endpoint !== undefined && { endpoint }),
    ...(status !== undefined && { status }),
    ...(reason !== undefined && { reason }),
    ...(error !== undefined && { error }),
    steps: treeOf(outcome, live),
  };
}

/** The explanation with the places of its origins in a file. */
export function inFile(explained: Explained, locate: Locate): Explained {
  const outcomes = explained.outcomes.map((outcome) => ({ ...outcome, steps: placed(outcome.steps, locate) }));
  return { ...explained, outcomes };
}

/** The same of the steps of an outcome. */
export function placed(steps: readonly Step[], locate: Locate): Step[] {
  return steps.map((step) => ({ ...withPlace(step, locate), steps: placed(step.steps, locate) }));
}

/** A gRPC call that is refused has status 200. */
function refuses(status: number, { reason, error }: Pick<NonNullable<Outcome["record"]>, "reason" | "error">): boolean {
  return reason !== "Upstream" && (status >= 400 || error !== undefined);
}
