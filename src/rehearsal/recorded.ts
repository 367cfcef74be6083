/** What happened to a request, connection or session that is over, as its record has it. */
import { ERRORS } from "../base/errors.ts";
import type { RequestRecord } from "../recorder/records.ts";
import { writtenPolicy } from "../trace/policy-kinds.ts";
import type { Step } from "../trace/steps.ts";
import type { ExplainedOutcome } from "./explanation.ts";

/** A record as an explanation has outcomes. */
export function explainedRecord(record: RequestRecord): ExplainedOutcome {
  const { kind = "request", listener, route, endpoint, status, reason, error } = record;
  const isConnection = kind === "connection" || kind === "session";
  return {
    given: {},
    share: 1,
    refused: error !== undefined && reason !== "Upstream",
    ...(listener !== undefined && { listener }),
    ...(route !== undefined && { route }),
    ...(endpoint !== undefined && { endpoint }),
    ...(!isConnection && status > 0 && { status }),
    reason,
    ...(error !== undefined && { error: ERRORS[error].message }),
    steps: allSteps(stepsOfRecord(record)),
  };
}

/** What a record says, in its order. */
export interface RecordSteps {
  readonly arrival: Step;
  /** Listener and route. */
  readonly place: readonly Step[];
  /** The policy that ended or answered it, if one did. */
  readonly decider: readonly Step[];
  /** The last call of an endpoint, if there was one. */
  readonly call: readonly Step[];
  readonly end: Step;
}

export function stepsOfRecord(record: RequestRecord): RecordSteps {
  return {
    arrival: arrived(record),
    place: placeSteps(record),
    decider: decidingSteps(record),
    call: callSteps(record),
    end: endOf(record),
  };
}

export function allSteps({ arrival, place, decider, call, end }: RecordSteps): Step[] {
  return [arrival, ...place, ...decider, ...call, end];
}

/** What came from the client, and what a record does not say about it. */
function arrived({
  kind = "request",
  method,
  version = "",
  host = "",
  path,
  cut,
  client,
  received,
}: RequestRecord): Step {
  const from = client === undefined ? [] : [`from ${client}`];
  const step = (of: "request" | "connection", name: string, reason: readonly string[]): Step => {
    const why = [...from, ...reason].join("; ");
    return {
      kind: of,
      name,
      result: kind === "refused" || kind === "unreadable" ? "no" : "yes",
      ...(why !== "" && { reason: why }),
      steps: [],
    };
  };
  switch (kind) {
    case "request": {
      const lacking = [
        "query",
        "header fields",
        ...(received > 0 ? ["body"] : []),
        ...(client === undefined ? ["the client's address"] : []),
      ];
      const shortened = cut === true ? ["the record has no room for the whole path"] : [];
      return step("request", `${method ?? ""} ${host}${path}`.trim(), [
        ...shortened,
        `not recorded: ${lacking.join(", ")}`,
      ]);
    }
    case "unreadable":
      return step("request", "that could not be read", []);
    case "connection":
    case "refused":
      return step("connection", [version, host].filter(Boolean).join(" "), []);
    case "session":
      return step("connection", `${version}, a session`, []);
  }
}

/** The listener, and the route if one was found. */
function placeSteps({ listener, route, routeRule, error, decider }: RequestRecord): Step[] {
  const steps: Step[] = listener === undefined ? [] : [{ kind: "listener", name: listener, result: "yes", steps: [] }];
  if (route !== undefined) {
    const name = routeRule === undefined ? route : `${route} rule ${routeRule}`;
    steps.push({ kind: "route", name, result: "yes", steps: [] });
  } else if (error === "TG_ROUTE_NOT_FOUND")
    steps.push({ kind: "route", name: "none", result: "no", reason: "no route matched", ...at(decider), steps: [] });
  return steps;
}

/** The policy that ended it, or responded in place of the backend. */
function decidingSteps({ decider, error }: RequestRecord): Step[] {
  if (decider?.policy === undefined) return [];
  const reason = [error === undefined ? "responds" : ERRORS[error].message];
  const phase = decider.phase === undefined ? [] : [`of the ${decider.phase}`];
  const name = writtenPolicy(decider.policy);
  return [
    {
      kind: "policy",
      name,
      result: error === undefined ? "yes" : "no",
      reason: [...reason, ...phase].join("; "),
      ...at(decider),
      steps: [],
    },
  ];
}

/** Whether the label of a backend is its key, because it has no name. */
export function isKey(backend: string): boolean {
  return backend.startsWith("/");
}

/** The endpoint that was tried last. */
function callSteps(record: RequestRecord): Step[] {
  const { kind = "request", backend, endpoint, attempts = 0, beforeCall, untilAnswer, error, decider } = record;
  if (endpoint === undefined) return [];
  // The name of the endpoint stands for a backend without a name.
  const of = backend === undefined || isKey(backend) ? [] : [`of ${backend}`];
  const retries = attempts > 1 ? [attempts === 2 ? "after a retry" : `after ${attempts - 1} retries`] : [];
  const called = beforeCall === undefined ? [] : [`called after ${shownMs(beforeCall)}`];
  const isReached = untilAnswer !== undefined || kind !== "request";
  const answered = untilAnswer === undefined ? [] : [`responded ${shownMs(untilAnswer)} later`];
  const failed = isReached ? [] : [error === undefined ? "no response" : ERRORS[error].message];
  const reason = [...of, ...retries, ...called, ...answered, ...failed].join(", ");
  const origin = isReached || decider?.policy !== undefined ? {} : at(decider);
  return [{ kind: "endpoint", name: endpoint, result: isReached ? "yes" : "no", reason, ...origin, steps: [] }];
}

/** How it ended for the client. */
function endOf(record: RequestRecord): Step {
  const { kind = "request", status, reason, error, duration, received, sent, endpoint, untilAnswer, decider } = record;
  const took = `after ${shownMs(duration)}`;
  const why = error === undefined ? "" : `: ${ERRORS[error].message}`;
  // Where it is written is said once: with the policy or the endpoint if one of them has decided.
  const shown =
    decider?.policy !== undefined || error === "TG_ROUTE_NOT_FOUND" || (endpoint && untilAnswer === undefined);
  const origin = shown ? {} : at(decider);
  if (kind === "connection" || kind === "session" || kind === "refused") {
    const end = kind === "refused" ? `refused ${took}${why}` : `ended ${took}${why}`;
    const result = error === undefined ? "yes" : "no";
    const bytes = `${received} bytes from the client, ${sent} to it`;
    return { kind: "connection", name: end, result, reason: bytes, ...origin, steps: [] };
  }
  if (status === 0)
    return { kind: "response", name: "none", result: "no", reason: `${took}${why}`, ...origin, steps: [] };
  const by = reason === "Upstream" ? "by the backend" : `by the gateway${why}`;
  const result = status < 400 && error === undefined ? "yes" : "no";
  return { kind: "response", name: String(status), result, reason: `${by}, ${took}`, ...origin, steps: [] };
}

function at(decider: RequestRecord["decider"]): Pick<Step, "origin"> {
  return decider?.origin === undefined ? {} : { origin: decider.origin };
}

/** With three significant digits. */
function shownMs(milliseconds: number): string {
  return milliseconds < 1000
    ? `${Number(milliseconds.toPrecision(3))} ms`
    : `${Number((milliseconds / 1000).toPrecision(3))} s`;
}
