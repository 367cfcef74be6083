/** The events of a trace as a tree of steps: what was decided, by what, and why. Explanations and views share it. */
import { readableValue } from "../base/header-text.ts";
import type { Origin } from "../base/origin.ts";
import { sameData } from "../base/same-data.ts";
import type { Need } from "../cel/index.ts";
import { acmeChallengeText } from "./acme-challenge.ts";
import { authorizationText, type ShownRule } from "./authorization.ts";
import type { ExpressionResult, PartResult, RequestState, RuleResult, TraceEvent, TraceMessage } from "./events.ts";
import { EFFECTIVE_NAMES, shadowKey, writtenPolicy } from "./policy-kinds.ts";
import { type KeyedRoute, routeName } from "./route-names.ts";

export interface Step {
  readonly kind:
    | "connection"
    /** A question of an ACME server, which the gateway may answer itself. */
    | "challenge"
    | "listener"
    | "route"
    /** A route group, to which the route before it delegates. */
    | "group"
    | "policy"
    /** A policy in shadow: what it would have done. */
    | "shadow"
    | "rule"
    | "expression"
    | "backend"
    | "request"
    | "endpoint"
    | "response";
  /** For people. */
  readonly name: string;
  /** Its key in the configuration; only of routes, and of listeners that lost. */
  readonly key?: string;
  /** Whether it passed, was chosen or is true; `unknown` depends on what is not known, `notReached` comes after the end. */
  readonly result: "yes" | "no" | "unknown" | "skipped" | "notReached";
  readonly reason?: string;
  /** What an expression computed and read: text of a part of it, and its value or why it has none, redacted. */
  readonly values?: readonly { readonly text: string; readonly value?: unknown; readonly error?: string }[];
  /** Where what decided was written. */
  readonly origin?: Origin;
  /** Header fields of a request or response as people read them, redacted. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** How many more routes lost, which are not among `steps`. */
  readonly omitted?: number;
}

/** Routes that lost and become steps, for each selection. */
const MAX_LOSERS = 5;

/** The steps of a request in the order in which they happened. */
export function stepsOf(events: readonly TraceEvent[]): Step[] {
  return events.flatMap((event, index) => {
    const expressions = (event.expressions ?? []).map(expression);
    const step = stepOf(event, events, index);
    const group = delegation(event.message, events, index);
    if (step?.kind !== "policy") return [...expressions, ...group, ...(step === undefined ? [] : [step])];
    return { ...step, steps: [...expressions, ...step.steps] };
  });
}

function stepOf({ message, severity, scope }: TraceEvent, all: readonly TraceEvent[], index: number): Step | undefined {
  if (scope?.[0] === "shadow") return message.type === "shadowDecision" ? shadowed(message, all, index) : undefined;
  // Part of the step of the policy, which follows.
  if (scope?.[0] === ALTERNATIVES) return undefined;
  switch (message.type) {
    case "routeSelection":
      return selection(message);
    case "policy": {
      const { result } = message;
      const policy = EFFECTIVE_NAMES[message.kind];
      const name = [...(scope ?? []), writtenPolicy(policy)].join(" > ");
      // What is attached to a service that is called is not among the policies of the request.
      const origin = scope === undefined ? wholeOf(policy, originsOf(policy, all, index)) : undefined;
      const steps = message.kind === ALTERNATIVES ? alternativesOf(all, index) : [];
      const step = { kind: "policy", name, ...(origin !== undefined && { origin }), steps } as const;
      return { ...step, ...resultOf(result, severity) };
    }
    case "authorizationResult": {
      const origins = scope === undefined ? originsOf("authorization", all, index) : [];
      const origin = wholeOf("authorization", origins);
      return {
        kind: "policy",
        name: "authorization",
        ...(origin !== undefined && { origin }),
        result: message.result === "allow" ? "yes" : "no",
        reason: authorizationText(message.rules.map(withoutValues), message.result),
        steps: message.rules.map((each, i) => rule(each, origins[i])),
      };
    }
    case "acmeChallenge":
      return {
        kind: "challenge",
        name: "http-01",
        result: message.result === "answered" ? "yes" : "skipped",
        reason: acmeChallengeText(message.result),
        steps: [],
      };
    case "requestSnapshot":
      return message.stage === "final request" ? sent(message.requestState) : undefined;
    case "backendCallStart": {
      if (scope !== undefined) return undefined;
      const own = all.slice(index + 1).filter((later) => later.scope === undefined);
      const result = own.find(({ message: { type } }) => type === "backendCallResult" || type === "backendCallStart");
      const { result: passed, reason } = called(result?.message);
      const ofBackend = message.backend === undefined ? "" : `of ${message.backend}, `;
      return { kind: "endpoint", name: message.target, result: passed, reason: `${ofBackend}${reason}`, steps: [] };
    }
    case "responseSnapshot":
      return message.stage === "final response" ? answered(message.requestState, all.slice(0, index)) : undefined;
    default:
      return undefined;
  }
}

/** The kind of the policy whose alternatives decide for it, and the scope of their events. */
const ALTERNATIVES = "satisfy";

/** What its alternatives have decided before the policy did. */
function alternativesOf(all: readonly TraceEvent[], index: number): Step[] {
  const start = all.findLastIndex(({ scope }, i) => i < index && scope === undefined);
  return all.slice(start + 1, index).flatMap(({ message, severity, scope }): Step[] => {
    if (message.type !== "policy" || scope?.[0] !== ALTERNATIVES) return [];
    const name = writtenPolicy(EFFECTIVE_NAMES[message.kind]);
    return [{ kind: "policy", name, steps: [], ...resultOf(message.result, severity) }];
  });
}

type PolicyResult = Extract<TraceMessage, { type: "policy" }>["result"];

function resultOf(result: PolicyResult, severity: TraceEvent["severity"]): Pick<Step, "result" | "reason"> {
  if (result.type === "skip") return { result: "skipped", reason: result.reason };
  return { result: severity === "error" ? "no" : "yes", reason: result.details };
}

/** The route group of a selection, before the routes in it. */
function delegation(message: TraceMessage, all: readonly TraceEvent[], index: number): Step[] {
  if (message.type !== "routeSelection" || message.group === undefined) return [];
  const messages = all.slice(0, index).map((event) => event.message);
  const before = messages.findLast((message) => message.type === "routeSelection");
  const reason = `route ${before && selection(before).name} delegates to it`;
  return [{ kind: "group", result: "yes", reason, steps: [], ...message.group }];
}

/** Where a policy was written, by its name in `effectivePolicy`: as the latest phase that has it says. */
function originsOf(name: string, all: readonly TraceEvent[], index: number): readonly Origin[] {
  for (let i = index; i >= 0; i--) {
    const message = all[i]?.message;
    const origins = message?.type === "policySelection" ? message.origins?.[name] : undefined;
    if (origins !== undefined) return origins;
  }
  return [];
}

/**
 * Where the policy with this name in `effectivePolicy` was written as a whole; undefined if it is in several places, as rules of a
 * Gateway and a route are.
 */
export function wholeOf(name: string, origins: readonly Origin[]): Origin | undefined {
  if (name !== "authorization") return origins.length === 1 ? origins[0] : undefined;
  const [first, ...others] = origins.map(({ path, ...origin }): Origin => {
    return { ...origin, path: path.at(-2) === "rules" ? path.slice(0, -2) : path };
  });
  return others.every((other) => sameData(other, first)) ? first : undefined;
}

/** The rules themselves follow as steps. */
function withoutValues({ mode, matched, error }: RuleResult): ShownRule {
  return { mode, matched, ...(error !== undefined && { error }) };
}

const VERDICTS = { allow: "yes", deny: "no", undecided: "unknown" } as const;

/** With the rules that the policy has evaluated, if it is `authorization`. */
function shadowed(
  { policy, decision, status, reason }: Extract<TraceMessage, { type: "shadowDecision" }>,
  all: readonly TraceEvent[],
  index: number,
): Step {
  const before = all.slice(0, index).findLast(({ scope }) => scope?.[0] === "shadow")?.message;
  const origins = originsOf(shadowKey(policy), all, index);
  const would = decision === "deny" ? `would deny with ${status}` : decision === "allow" ? "would allow" : "undecided";
  return {
    kind: "shadow",
    name: policy,
    result: VERDICTS[decision],
    reason: reason === undefined ? would : `${would}: ${reason}`,
    steps: before?.type === "authorizationResult" ? before.rules.map((each, i) => rule(each, origins[i])) : [],
  };
}

function selection(message: Extract<TraceMessage, { type: "routeSelection" }>): Step {
  const { selectedRoute, evaluatedRoutes, omittedRoutes = 0, candidates, listeners } = message;
  if (listeners !== undefined) {
    const steps = listeners.map(({ listener: key, name = key, ...others }): Step => {
      return { kind: "listener", name, key, result: "no", ...others, steps: [] };
    });
    return { kind: "listener", name: "none", result: "no", reason: "no listener accepts this host", steps };
  }
  const others = candidates.filter(({ route }) => route !== selectedRoute);
  const routeStep = (
    candidate: KeyedRoute,
    result: Step["result"],
    reason: string,
    inner: Pick<Step, "steps" | "omitted"> = { steps: [] },
  ): Step => {
    const { route: key, origin } = candidate;
    const name = routeName(candidate, evaluatedRoutes);
    return { kind: "route", name, key, result, reason, ...(origin !== undefined && { origin }), ...inner };
  };
  const steps = others
    .slice(0, MAX_LOSERS)
    .map((each) =>
      routeStep(each, "no", each.because === undefined ? each.reason : `matches too; precedence: ${each.because}`),
    );
  const lost = evaluatedRoutes.length + omittedRoutes - (selectedRoute === null ? 0 : 1);
  const losers = { steps, ...(lost > steps.length && { omitted: lost - steps.length }) };
  if (selectedRoute === null)
    return { kind: "route", name: "none", result: "no", reason: "no route matches", ...losers };
  const selected = candidates.find(({ route }) => route === selectedRoute) ?? { route: selectedRoute };
  const isOnly = !others.some(({ matched }) => matched);
  // Without the other routes it is not known whether they match too.
  const reason =
    evaluatedRoutes.length === 0 ? "selected" : isOnly ? "the only route that matches" : "takes precedence";
  return routeStep(selected, "yes", reason, losers);
}

function rule(
  { name, matched, mode, error, needs, inputs = {}, values = [] }: RuleResult,
  origin: Origin | undefined,
): Step {
  return {
    kind: "rule",
    name: `${mode} ${name}`,
    result: needs !== undefined ? "unknown" : matched ? "yes" : "no",
    reason: needs !== undefined ? `assumed ${matched}; ${notKnown(needs)}` : (error ?? String(matched)),
    ...valuesOf(name, values, inputs),
    ...(origin !== undefined && { origin }),
    steps: [],
  };
}

function notKnown(needs: readonly Need[]): string {
  return `not known: ${needs.map(({ what }) => what).join(", ")}`;
}

function expression({ text, value, error, needs, values = [], inputs = {} }: ExpressionResult): Step {
  // A text that is only one path is its own input.
  const others = Object.fromEntries(Object.entries(inputs).filter(([path]) => path !== text));
  return {
    kind: "expression",
    name: text,
    result: needs !== undefined ? "unknown" : error === undefined && value !== false ? "yes" : "no",
    ...(needs !== undefined
      ? { reason: notKnown(needs) }
      : error !== undefined
        ? { reason: error }
        : value !== undefined && { reason: JSON.stringify(value) }),
    ...valuesOf(text, values, others),
    steps: [],
  };
}

function valuesOf(
  expressionText: string,
  parts: readonly PartResult[],
  inputs: Readonly<Record<string, unknown>>,
): Pick<Step, "values"> {
  const values = [
    ...parts.map(({ from, to, ...result }) => ({ text: expressionText.slice(from, to), ...result })),
    ...Object.entries(inputs).map(([text, value]) => ({ text, value })),
  ];
  return values.length === 0 ? {} : { values };
}

function sent({ request }: RequestState): Step | undefined {
  if (request === undefined) return undefined;
  const name = `${request.method} ${request.uri}`;
  return { kind: "request", name, result: "yes", headers: readable(request.headers), steps: [] };
}

function called(message: TraceMessage | undefined): { readonly result: Step["result"]; readonly reason: string } {
  if (message?.type !== "backendCallResult") return { result: "no", reason: "no response" };
  if (message.status !== null) return { result: "yes", reason: `status ${message.status}` };
  // Connections without requests have no status.
  if (message.error === null) return { result: "yes", reason: "connected" };
  return { result: "no", reason: message.error };
}

/** The response that the client gets, compared with that of the backend. */
function answered({ response }: RequestState, before: readonly TraceEvent[]): Step | undefined {
  if (response === undefined) return undefined;
  const { code, headers } = response;
  const own = before.filter(({ scope }) => scope === undefined).map(({ message }) => message);
  const call = own.findLastIndex(({ type }) => type === "backendCallStart");
  const raw = own.findLastIndex((message) => message.type === "responseSnapshot" && message.stage === "raw response");
  const received = raw > call ? own[raw] : undefined;
  const reason =
    received?.type === "responseSnapshot" && received.requestState.response !== undefined
      ? changesOf(received.requestState.response, response)
      : "by the gateway";
  return {
    kind: "response",
    name: String(code),
    result: code < 400 ? "yes" : "no",
    reason,
    headers: readable(headers),
    steps: [],
  };
}

function readable(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, readableValue(value)]));
}

type Response = NonNullable<RequestState["response"]>;

/** What the gateway has changed in a response. */
function changesOf(received: Response, sent: Response): string {
  const named = (what: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${what} ${names.join(", ")}`];
  const [old, all] = [received.headers, sent.headers];
  const names = Object.keys(all);
  const changes = [
    ...(received.code === sent.code ? [] : [`replaces status ${received.code}`]),
    ...named(
      "adds",
      names.filter((name) => !(name in old)),
    ),
    ...named(
      "changes",
      names.filter((name) => name in old && old[name] !== all[name]),
    ),
    ...named(
      "removes",
      Object.keys(old).filter((name) => !(name in all)),
    ),
  ];
  return changes.length === 0 ? "by the backend" : `by the backend; the gateway ${changes.join(", ")}`;
}
