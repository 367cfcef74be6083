/**
 * The phase `match-route`: the route by host, path and conditions (`match/`), through route groups to the route that has backends,
 * then one of its backends by weight (docs/lifecycle.md#4-match-route).
 */
import { GatewayError, type Why } from "../../base/errors.ts";
import { placeName } from "../../ir/origins.ts";
import { type CompiledChain, compilePolicies, NO_POLICIES } from "../../policies/compile.ts";
import { mergeLevels, NO_LEVEL } from "../../policies/merge.ts";
import type { SetKey } from "../../policies/policy-set.ts";
import type { CompiledBind, CompiledListener, CompiledRoute } from "../compile/compiled.ts";
import type { Exchange } from "../exchange/exchange.ts";
import { describeCandidate } from "../match/reason.ts";
import type { Router } from "../match/router.ts";
import { sampleRequest } from "./sample-request.ts";
import { pick } from "./select-backend.ts";
import { checkHost } from "./select-listener.ts";

/** What the phase may read and set. */
type Matching = Pick<
  Exchange,
  "bind" | "downstream" | "request" | "requestSide" | "selected" | "services" | "span" | "startedAt" | "trace"
>;

export function matchRoute(exchange: Matching): undefined {
  checkHost(exchange);
  chooseRoute(exchange);
  exchange.trace?.routed(undefined);
  const { recorder } = exchange.services;
  if (recorder !== undefined) sampleRequest(exchange, recorder);
  admit(exchange);
}

/** Turns the request away if the expressions of its route have used too much; then none of them run, not even for the response. */
function admit({ selected, services }: Matching): void {
  if (selected.route === undefined) return;
  try {
    services.expressions.admit(selected.route.label);
  } catch (error) {
    selected.takeRoute(selected.route, undefined, NO_POLICIES);
    throw error;
  }
}

function chooseRoute(exchange: Matching): undefined {
  const listener = exchange.selected.listener as CompiledListener;
  let route = select(exchange, listener.router);
  // Most routes have one backend, which the compilation has determined.
  if (route.only !== undefined) {
    exchange.selected.takeRoute(route, route.only, route.policies);
    return undefined;
  }
  let chain: CompiledRoute[] | undefined;
  for (;;) {
    const backend = pick(route, exchange.services);
    if (backend?.target.type !== "routeGroup") {
      const policies = chain === undefined ? route.policies : mergedPolicies(route, chain, exchange.bind);
      exchange.selected.takeRoute(route, backend, policies);
      if (chain !== undefined) exchange.selected.parents = chain;
      return undefined;
    }
    // The backend is a route group: its routes take over, with the policies of this one.
    chain ??= [];
    chain.push(route);
    const group = exchange.bind.groups.get(backend.target.name);
    if (group === undefined) throw new GatewayError("TG_ROUTE_NOT_FOUND");
    route = select(exchange, group, backend.target.name);
    if (chain.includes(route)) throw new GatewayError("TG_DELEGATION_CYCLE");
  }
}

/** The best route of a listener or of a route `group`; a trace explains the choice. Throws TG_ROUTE_NOT_FOUND. */
function select(exchange: Matching, router: Router<CompiledRoute>, group?: string): CompiledRoute {
  const { request } = exchange;
  // `OPTIONS *` concerns the server as a whole, and CONNECT has no path: both are routed like the path `/`.
  const { path } = request;
  const pathless = path === "*" || path === "";
  if (pathless) request.path = "/";
  const { host } = exchange.selected;
  const match = router.select(request, host);
  const { trace } = exchange;
  if (match !== undefined) trace?.routed(match.route.label);
  if (trace?.wantsCandidates) trace.routeSelection(router.explain(request, host, match), group);
  else trace?.routeSelected(match, group);
  if (pathless) request.path = path;
  if (match === undefined) throw noRoute(exchange, router);
  exchange.selected.match = match;
  exchange.span?.matched(match.path);
  return match.route;
}

// Separate, because its closure would cost every request an allocation.
function noRoute({ request, selected: { host } }: Matching, router: Router<CompiledRoute>): GatewayError {
  const why: Why = (shown) => {
    const nearest = router.nearest(request, host);
    if (nearest === undefined) return { text: "there are no routes" };
    const { route } = nearest;
    return { text: `the nearest is ${route.label}: ${describeCandidate(nearest, shown.hiddenHeaders)}`, route };
  };
  return new GatewayError("TG_ROUTE_NOT_FOUND", undefined, undefined, { why });
}

/** A route's policies after those of the routes that delegated to it, outermost first; later ones win. */
function mergedPolicies(
  route: CompiledRoute,
  parents: readonly CompiledRoute[],
  { policies, merged: chains }: CompiledBind,
): CompiledChain {
  let known = chains.get(route);
  if (known === undefined) {
    known = new Map();
    chains.set(route, known);
  }
  const key = parents.map((parent) => parent.key).join(" ");
  let chain = known.get(key);
  if (chain === undefined) {
    const routes = [...parents, route];
    const levels = routes.map(({ policySet }) => ({ ...NO_LEVEL, set: policySet }));
    const placeOf = (kind: SetKey): string => {
      const from = routes.findLast(({ policySet }) => policySet[kind] !== undefined) ?? route;
      return placeName(kind, from, from.key);
    };
    chain = compilePolicies(mergeLevels(...levels).set, "route", policies, `${key} ${route.key}`, placeOf);
    known.set(key, chain);
  }
  return chain;
}
