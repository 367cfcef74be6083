/** The events of a trace as a tree of steps: what was decided, by what, and why. Explanations and views share it. */
import type { Origin } from "../base/origin.ts";
import type { RequestState, TraceEvent, TraceMessage } from "./events.ts";

export interface Step {
  readonly kind:
    | "connection"
    | "listener"
    | "route"
    | "policy"
    | "rule"
    | "expression"
    | "backend"
    | "request"
    | "endpoint"
    | "response";
  readonly name: string;
  /** Whether it passed, was chosen or is true; `unknown` depends on what is not known, `notReached` comes after the end. */
  readonly result: "yes" | "no" | "unknown" | "skipped" | "notReached";
  readonly reason?: string;
  /** What an expression computed and read: text of a part of it, and its value or why it has none, redacted. */
  readonly values?: readonly { readonly text: string; readonly value?: unknown; readonly error?: string }[];
  /** Where what decided was written. */
  readonly origin?: Origin;
  /** Header fields of a request or response, redacted. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

/** Routes that lost, for each selection. */
const MAX_LOSERS = 5;

/** The steps of a request in the order in which they happened. */
export function stepsOf(events: readonly TraceEvent[]): Step[] {
  return events.flatMap((event, index) => stepOf(event, events, index) ?? []);
}

function stepOf({ message, severity, scope }: TraceEvent, all: readonly TraceEvent[], index: number): Step | undefined {
  switch (message.type) {
    case "routeSelection":
      return selection(message);
    case "policy": {
      const { result } = message;
      const name = [...(scope ?? []), message.kind].join(" > ");
      // What is attached to a service that is called is not among the policies of the request.
      const [origin] = scope === undefined ? originsOf(message.kind, all, index) : [];
      const step = { kind: "policy", name, ...(origin !== undefined && { origin }), steps: [] } as const;
      if (result.type === "skip") return { ...step, result: "skipped", reason: result.reason };
      return { ...step, result: severity === "error" ? "no" : "yes", reason: result.details };
    }
    case "authorizationResult": {
      const origins = scope === undefined ? originsOf("authorization", all, index) : [];
      return {
        kind: "policy",
        name: "authorization",
        result: message.result === "allow" ? "yes" : "no",
        steps: message.rules.map((each, i) => rule(each, origins[i])),
      };
    }
    case "requestSnapshot":
      return message.stage === "final request" ? sent(message.requestState) : undefined;
    case "backendCallStart": {
      if (scope !== undefined) return undefined;
      const result = all
        .slice(index)
        .find((later) => later.message.type === "backendCallResult" && later.scope === undefined);
      return { kind: "endpoint", name: message.target, ...called(result?.message), steps: [] };
    }
    case "responseSnapshot":
      return message.stage === "final response" ? answered(message.requestState) : undefined;
    default:
      return undefined;
  }
}

/** Where the policy that an event is about was written: as its phase, the latest that has the kind, says. */
function originsOf(kind: string, all: readonly TraceEvent[], index: number): readonly Origin[] {
  const key = kind.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  for (let i = index; i >= 0; i--) {
    const message = all[i]?.message;
    const origins = message?.type === "policySelection" ? message.origins?.[key] : undefined;
    if (origins !== undefined) return origins;
  }
  return [];
}

function selection({ selectedRoute, candidates, listeners }: Extract<TraceMessage, { type: "routeSelection" }>): Step {
  if (listeners !== undefined) {
    const steps = listeners.map(
      ({ listener, reason }): Step => ({ kind: "listener", name: listener, result: "no", reason, steps: [] }),
    );
    return { kind: "listener", name: "none", result: "no", reason: "no listener accepts this host", steps };
  }
  const others = candidates.filter(({ route }) => route !== selectedRoute);
  const steps = others.slice(0, MAX_LOSERS).map(({ route, reason, origin }): Step => {
    return { kind: "route", name: route, result: "no", reason, ...(origin !== undefined && { origin }), steps: [] };
  });
  if (selectedRoute === null) return { kind: "route", name: "none", result: "no", reason: "no route matches", steps };
  const because = others.find(({ matched }) => matched)?.because;
  const reason = because === undefined ? "the only route that matches" : because;
  const origin = candidates.find(({ route }) => route === selectedRoute)?.origin;
  return {
    kind: "route",
    name: selectedRoute,
    result: "yes",
    reason,
    ...(origin !== undefined && { origin }),
    steps,
  };
}

type RuleResult = Extract<TraceMessage, { type: "authorizationResult" }>["rules"][number];

function rule(
  { name, matched, mode, error, inputs = {}, values: parts = [] }: RuleResult,
  origin: Origin | undefined,
): Step {
  const values = [
    ...parts.map(({ from, to, ...result }) => ({ text: name.slice(from, to), ...result })),
    ...Object.entries(inputs).map(([text, value]) => ({ text, value })),
  ];
  return {
    kind: "rule",
    name: `${mode} ${name}`,
    result: matched ? "yes" : "no",
    ...(error !== undefined && { reason: error }),
    ...(values.length > 0 && { values }),
    ...(origin !== undefined && { origin }),
    steps: [],
  };
}

function sent({ request, backend }: RequestState): Step | undefined {
  if (request === undefined) return undefined;
  const name = `${request.method} ${request.uri}`;
  const reason = backend === undefined ? undefined : `to backend ${backend.name}`;
  return {
    kind: "request",
    name,
    result: "yes",
    ...(reason !== undefined && { reason }),
    headers: request.headers,
    steps: [],
  };
}

function called(message: TraceMessage | undefined): Pick<Step, "result" | "reason"> {
  if (message?.type !== "backendCallResult") return { result: "no", reason: "no response" };
  if (message.status !== null) return { result: "yes", reason: `status ${message.status}` };
  return { result: "no", reason: message.error ?? "no response" };
}

function answered({ response }: RequestState): Step | undefined {
  if (response === undefined) return undefined;
  const result = response.code < 400 ? "yes" : "no";
  return { kind: "response", name: String(response.code), result, headers: response.headers, steps: [] };
}
