/**
 * The tree of one run: the steps of its trace, and around them what a trace does not say, because a gateway would have to find it out
 * for every request: the listeners that were not chosen, policies in force and those that were not reached, the other backends of a
 * split, and the other endpoints of the backend.
 */
import { traceKeyOf } from "../policies/compile.ts";
import { REQUEST_ORDER } from "../policies/order.ts";
import type { CompiledBind, CompiledListener, CompiledTcpRoute } from "../proxy/compile/compiled.ts";
import type { Exchange } from "../proxy/exchange/exchange.ts";
import type { AccessRecord } from "../telemetry/access-record.ts";
import { detailsText } from "../trace/details.ts";
import type { Phase, TraceEvent } from "../trace/events.ts";
import { EFFECTIVE_NAMES, writtenPolicy } from "../trace/policy-kinds.ts";
import { routeName } from "../trace/route-names.ts";
import { type Step, stepsOf, wholeOf } from "../trace/steps.ts";
import type { Balancer, PassedOver } from "../upstream/balancers/balancer.ts";
import type { Endpoint } from "../upstream/endpoints/endpoint.ts";
import type { EndpointStats } from "../upstream/endpoints/endpoints.ts";
import type { Asked } from "./choices.ts";

/** What a run leaves behind. */
export interface Run {
  readonly events: readonly TraceEvent[];
  /** undefined: there was no request. */
  readonly exchange: Exchange | undefined;
  /** The choices of weighted backends, by their names. */
  readonly splits: ReadonlyMap<string, Asked>;
  /** What the access log would record, before the configuration's filters and changes; undefined if nothing ended in time. */
  readonly record: Partial<AccessRecord> | undefined;
  readonly bind: CompiledBind;
  /** Of the handshake; undefined: there was none. */
  readonly serverName: string | undefined;
}

/** Endpoints or listeners beside the chosen one. */
const MAX_OTHERS = 5;

/** `live`: state of endpoints in a running gateway, by their keys. */
export function treeOf(run: Run, live: ReadonlyMap<string, EndpointStats>): Step[] {
  const { events, exchange, splits } = run;
  if (exchange === undefined) return connectionTree(run);
  const steps = listenerSteps(exchange);
  for (const part of partsOf(events)) {
    const [first] = part;
    const selection = first?.message.type === "policySelection" ? first.message : undefined;
    const own = stepsOf(part);
    if (selection !== undefined) own.splice(policiesEnd(own), 0, ...policySteps(selection, part));
    steps.push(...own);
  }
  const balancer = exchange.selected.backend?.balancer;
  const open = [...splits.values()];
  if (run.record?.code === "TG_NO_HEALTHY_BACKENDS")
    steps.splice(
      steps.findLastIndex(({ kind }) => kind === "response"),
      0,
      ...noEndpoint(balancer),
    );
  return steps.flatMap((step) => {
    if (step.kind === "endpoint") return [withOthers(step, balancer, live)];
    return [step, ...(step.kind === "route" ? splitsOf(step, open) : [])];
  });
}

/** Of a connection without requests, or of one that ends before its first: also by bytes that are not one. */
function connectionTree({ events, splits, record, bind, serverName }: Run): Step[] {
  const host = serverName ?? "";
  const listener = bind.protocol === "http" ? undefined : bind.listeners.find(host);
  const routes = listener?.tcpRoutes.routes ?? [];
  const steps = stepsOf(events).flatMap((step): Step[] => {
    if (step.kind === "endpoint" && step.result === "yes" && bind.protocol === "udp")
      return [{ ...step, reason: "gets the datagram" }];
    if (step.kind === "route") return [tcpRoute(step, routes, host), ...splitsOf(step, [...splits.values()])];
    return [step];
  });
  const selection =
    bind.listeners.entries.length === 0 || bind.protocol === "http"
      ? []
      : [chosenListener(bind, listener, host, "server name")];
  const shown = [...selection, ...steps];
  // What ended it may be among the steps.
  if (record?.error === undefined || shown.some(({ result }) => result === "no")) return shown;
  const kind = record.status === undefined ? "connection" : "request";
  const end: Step = {
    kind,
    name: `from ${record.source ?? "the client"}`,
    result: "no",
    reason: record.error,
    ...(record.origin !== undefined && { origin: record.origin }),
    steps: [],
  };
  return [...shown, end];
}

/** Routes of TCP and TLS have no other condition than the server name. */
function tcpRoute(step: Step, routes: readonly CompiledTcpRoute[], serverName: string): Step {
  const own = routes.find(({ label }) => label === step.key);
  const labels = routes.map(({ label }) => label);
  const names = ({ hostnames }: CompiledTcpRoute): string => hostnames.join(", ");
  const others = routes.filter((route) => route !== own).slice(0, MAX_OTHERS);
  const steps = others.map((route): Step => {
    const isAny = route.hostnames.length === 0;
    const reason = isAny
      ? "matches too; precedence: server name before any"
      : `${serverName === "" ? "no server name" : serverName} is not ${names(route)}`;
    const { label: key, origin } = route;
    const name = routeName({ route: key, ...(origin !== undefined && { origin }) }, labels);
    return { kind: "route", name, key, result: "no", reason, ...(origin !== undefined && { origin }), steps: [] };
  });
  if (own === undefined) return { ...step, steps };
  return { ...step, reason: own.hostnames.length === 0 ? "any connection" : `server name ${names(own)}`, steps };
}

/** Where the policies of the request end: at the one that ends it, else at the call or the response. */
function policiesEnd(steps: readonly Step[]): number {
  const refusal = steps.findIndex(({ kind, result }) => kind === "policy" && result === "no");
  const call = steps.findIndex(({ kind }) => kind === "request" || kind === "endpoint" || kind === "response");
  const end = call < 0 ? steps.length : call;
  return refusal < 0 || refusal > end ? end : refusal + 1;
}

/** The keys of the endpoints whose state the tree shows. */
export function endpointsOf({ exchange }: Run): readonly string[] {
  return (exchange?.selected.backend?.balancer?.endpoints ?? []).slice(0, MAX_OTHERS + 1).map(({ key }) => key);
}

/** Divides the events before each selection of policies. */
function partsOf(events: readonly TraceEvent[]): TraceEvent[][] {
  const parts: TraceEvent[][] = [[]];
  for (const event of events) {
    if (event.message.type === "policySelection" && event.scope === undefined) parts.push([]);
    parts.at(-1)?.push(event);
  }
  return parts;
}

/** The listener of the request among those of its bind. Where none fits, the trace has said so. */
function listenerSteps({ selected, bind, downstream }: Exchange): Step[] {
  const { listener } = selected;
  if (listener === undefined) return [];
  const { tls } = downstream.connection;
  return [
    tls === undefined
      ? chosenListener(bind, listener, selected.host, "host")
      : chosenListener(bind, listener, tls.serverName, "server name"),
  ];
}

function chosenListener(
  { listeners, protocol, provenance }: CompiledBind,
  listener: CompiledListener | undefined,
  host: string,
  what: "host" | "server name",
): Step {
  const own = listeners.entries.find(({ value }) => value === listener)?.hostname ?? "";
  const others = listeners.entries.filter(({ value }) => value !== listener);
  const step = ({ key, name }: CompiledListener, result: "yes" | "no", reason: string): Step => {
    const origin = provenance.originOfListener(key);
    return { kind: "listener", name, result, reason, ...(origin !== undefined && { origin }), steps: [] };
  };
  const steps = others
    .slice(0, MAX_OTHERS)
    .map(({ hostname, value }) => step(value, "no", hostReason(hostname, own, host)));
  if (listener === undefined)
    return { kind: "listener", name: "none", result: "no", reason: `no listener has this ${what}`, steps };
  const any = protocol === "tcp" || protocol === "udp" ? "the only one of its port" : `any ${what}`;
  return { ...step(listener, "yes", isAny(own) ? any : `${what} ${own}`), steps };
}

function hostReason(hostname: string, own: string, host: string): string {
  if (isAny(hostname)) return isAny(own) ? "a listener before it has the same host" : `any host, which ${own} precedes`;
  const isFit = hostname.startsWith("*.") ? host.endsWith(hostname.slice(1)) : hostname === host;
  return isFit ? `${hostname}, which ${own} precedes` : `${host} is not ${hostname}`;
}

function isAny(hostname: string): boolean {
  return hostname === "" || hostname === "*";
}

/** Policies that leave no event: those in force, such as `retry`, and those that come after the end. */
function policySteps(
  { phase, effectivePolicy, origins = {} }: Extract<TraceEvent["message"], { type: "policySelection" }>,
  part: readonly TraceEvent[],
): Step[] {
  const configured = new Map(Object.entries(effectivePolicy).filter(([, value]) => value !== null));
  const seen = new Set(part.flatMap(kindOf));
  const kinds = REQUEST_ORDER[phase].flatMap((kind) => {
    const name = traceKeyOf(kind);
    return configured.has(name) ? [name] : [];
  });
  const isComplete = part.some(({ message, scope }) => scope === undefined && ends(message, phase));
  const last = kinds.findLastIndex((name) => seen.has(name));
  return kinds.flatMap((name, at): Step[] => {
    if (seen.has(name)) return [];
    const origin = wholeOf(name, origins[name] ?? []);
    const step = {
      kind: "policy",
      name: writtenPolicy(name),
      ...(origin !== undefined && { origin }),
      steps: [],
    } as const;
    if (!isComplete && at > last) return [{ ...step, result: "notReached" }];
    return [{ ...step, result: "yes", reason: detailsText(configured.get(name)) }];
  });
}

function kindOf({ message, scope }: TraceEvent): string[] {
  if (scope !== undefined) return [];
  if (message.type === "policy") return [EFFECTIVE_NAMES[message.kind]];
  return message.type === "authorizationResult" ? ["authorization"] : [];
}

/** Whether the event comes after all policies of a phase. */
function ends(message: TraceEvent["message"], phase: Phase): boolean {
  if (message.type === "backendCallStart") return true;
  return (
    message.type === "requestSnapshot" &&
    (message.stage === `${phase} policies` || (phase === "backend" && message.stage === "final request"))
  );
}

/** How the backend of a route was chosen, and after retries that change it the next one. */
function splitsOf({ key }: Step, splits: readonly Asked[]): Step[] {
  return splits.filter(({ route }) => route === key).map(backendStep);
}

function backendStep({ value, others, share }: Asked): Step {
  const step = (key: unknown, result: Step["result"], steps: readonly Step[]): Step => ({
    kind: "backend",
    name: String(key),
    result,
    reason: `${percent(share(key))} by weight`,
    steps,
  });
  return step(
    value,
    "yes",
    others.map((key) => step(key, "skipped", [])),
  );
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

function withOthers(step: Step, balancer: Balancer | undefined, live: ReadonlyMap<string, EndpointStats>): Step {
  const { endpoints = [] } = balancer ?? {};
  const chosen = endpoints.find(({ pool }) => pool.name === step.name);
  if (chosen === undefined) return step;
  const passedOver = balancer?.passedOver?.(chosen) ?? [];
  const behind = new Map(passedOver.map(({ name, why }) => [name, why]));
  const now = performance.now();
  const state = (endpoint: Endpoint): string[] => {
    const stats = live.get(endpoint.key);
    return [
      ...(endpoint.isEvicted(now) ? [endpoint.whyLeftOut(now)] : []),
      ...(stats === undefined ? [] : [loadText(stats)]),
    ];
  };
  const reason = [step.reason ?? [], ...state(chosen)].flat().join(", ");
  const others = endpoints.filter((endpoint) => endpoint !== chosen);
  const steps = others.slice(0, MAX_OTHERS).map((endpoint): Step => {
    const result = endpoint.isEvicted(now) ? "no" : "skipped";
    const { name } = endpoint.pool;
    const why = behind.get(name) ?? "not chosen";
    behind.delete(name);
    const reason = [...(result === "no" ? [] : [why]), ...state(endpoint)].join(", ");
    return { kind: "endpoint", name, result, reason, steps: [] };
  });
  const room = MAX_OTHERS - steps.length;
  const excluded = passedOver.filter(({ name }) => behind.has(name)).slice(0, room);
  return { ...step, reason, steps: [...steps, ...excluded.map(excludedStep)] };
}

/** Why none of the endpoints may be chosen, if there are any. */
function noEndpoint(balancer: Balancer | undefined): Step[] {
  const steps = (balancer?.passedOver?.(undefined) ?? []).slice(0, MAX_OTHERS).map(excludedStep);
  if (steps.length === 0) return [];
  return [{ kind: "endpoint", name: "none", result: "no", reason: "none may get the request", steps }];
}

function excludedStep({ name, why }: PassedOver): Step {
  return { kind: "endpoint", name, result: "no", reason: why, steps: [] };
}

function loadText({ health, pending, latency }: EndpointStats): string {
  return `health ${health.toFixed(2)}, ${pending} in progress, ${(latency * 1000).toFixed(1)} ms`;
}
