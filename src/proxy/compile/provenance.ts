/**
 * Where what a request met was written, for its trace and the access log. Nothing is kept for this but the packed routes, which are
 * shared memory: a compiled route is found in them by its index. What was found last is kept, because reading a route again for each
 * request would make those that are rejected cost more than half as much again.
 */
import { BoundedCache } from "../../base/bounded-cache.ts";
import type { ErrorCode } from "../../base/errors.ts";
import type { Origin } from "../../base/origin.ts";
import type { Frontend, FrontendOrigins, Ir, Listener, Route } from "../../ir/ir.ts";
import { type Containers, originOfBackend, originsOf, type PolicyOrigins } from "../../ir/origins.ts";
import { type PackedRoutes, placeAt, routeAt } from "../../ir/packed-ir.ts";
import { mergeLevels } from "../../policies/merge.ts";
import type { PolicySet, SetKey } from "../../policies/policy-set.ts";
import type { Phase } from "../../trace/events.ts";

/** A compiled route, as far as this goes. */
interface Compiled {
  readonly digest: string;
  readonly policySet: PolicySet;
  readonly backends: readonly object[];
}

interface Indexes {
  /** The index of a route among the packed routes; undefined if it is not there. */
  indexOf(route: Named): number | undefined;
}

type Named = Pick<Compiled, "digest">;

/** What a request has chosen so far. */
interface Chosen {
  readonly listener: { readonly key: string } | undefined;
  /** The routes that delegated to `route`, the outermost first. */
  readonly parents: readonly Compiled[];
  readonly route: Compiled | undefined;
  readonly backend: object | undefined;
}

/** What a connection or session without HTTP has chosen so far. */
interface ChosenForConnection {
  readonly listener: Chosen["listener"];
  readonly route: { readonly origin: Origin | undefined; readonly backends: readonly object[] } | undefined;
  readonly backend: Chosen["backend"];
}

/** A policy, and its rule if it has some, by its position among those of all levels. */
export interface DecidingPolicy {
  readonly policy: SetKey;
  readonly phase: Phase;
  readonly rule?: number | undefined;
}

/** What of the configuration ended a request. */
export type Decider = DecidingPolicy | { readonly route: Named };

/** The policy that decided, unless a route did. */
export function policyOf(decider: Decider | undefined): DecidingPolicy | undefined {
  return decider !== undefined && "policy" in decider ? decider : undefined;
}

/** What errors are about, unless a policy has thrown them. */
const ABOUT: { readonly [Code in ErrorCode]?: "route" | "backend" | "timeout" } = {
  TG_ROUTE_NOT_FOUND: "route",
  TG_NO_BACKENDS: "route",
  TG_DELEGATION_CYCLE: "route",
  TG_EXPRESSIONS_EXCEEDED: "route",
  TG_BACKEND_MISSING: "backend",
  TG_BACKEND_TYPE: "backend",
  TG_NO_HEALTHY_BACKENDS: "backend",
  TG_DNS_FAILED: "backend",
  TG_ADDRESS_REFUSED: "backend",
  TG_POOL_FULL: "backend",
  TG_UPSTREAM_FAILED: "backend",
  TG_UPSTREAM_TIMEOUT: "backend",
  TG_UPGRADE_MISMATCH: "backend",
  TG_RESPONSE_TOO_LARGE: "backend",
  TG_REQUEST_TIMEOUT: "timeout",
};

/** The field of `frontendPolicies` that errors are about, unless a policy has thrown them. */
const IN_FRONTEND: { readonly [Code in ErrorCode]?: keyof FrontendOrigins } = {
  TG_EXT_AUTHZ: "networkExtAuthz",
  TG_URI_TOO_LONG: "http",
  TG_HEAD_TOO_LARGE: "http",
  TG_BODY_TOO_LARGE: "http",
  TG_CLIENT_TIMEOUT: "http",
  TG_BUFFERS_FULL: "http",
};

/** Where the setting of client connections was written that an error of this code is about; undefined: nowhere, or it is about none. */
export function originInFrontend(
  code: ErrorCode | undefined,
  { origins = {} }: Pick<Frontend, "origins">,
): Origin | undefined {
  const field = code && IN_FRONTEND[code];
  return field && origins[field]?.[0];
}

/** Entries of each cache. */
const MAX_FOUND = 256;

/** The origins of a phase's policies. */
interface Found {
  readonly parents: Chosen["parents"];
  readonly origins: PolicyOrigins;
}

export class Provenance {
  readonly #listeners: ReadonlyMap<string, Pick<Listener, "policies" | "sources" | "origin">>;
  readonly #groups: ReadonlyMap<string, Origin | undefined>;
  readonly #containers: Containers;
  readonly #owners: { readonly packed: PackedRoutes; readonly indexes: Indexes }[] = [];
  /** By route or backend. */
  readonly #origins = new BoundedCache<{ readonly origin: Origin | undefined }, object>(MAX_FOUND);
  /** By listener, route or backend. */
  readonly #phases = new BoundedCache<Found, object>(MAX_FOUND);

  constructor({ binds, backends, targeted, routeGroups }: Pick<Ir, "binds" | "backends" | "targeted" | "routeGroups">) {
    this.#groups = new Map(routeGroups.map(({ name, origin }) => [name, origin]));
    this.#listeners = new Map(binds.flatMap(({ listeners }) => listeners.map((listener) => [listener.key, listener])));
    this.#containers = {
      backends: backends.flatMap(({ key, origin }) => (origin === undefined ? [] : [{ key, origin }])),
      targeted: targeted.flatMap(({ key, name, origin }) =>
        name === null || origin === undefined ? [] : [{ key, name, origin }],
      ),
    };
  }

  add(packed: PackedRoutes, indexes: Indexes): void {
    this.#owners.push({ packed, indexes });
  }

  /** The route itself. */
  originOf(route: Named): Origin | undefined {
    let found = this.#origins.get(route);
    if (found === undefined) {
      const at = this.#placeOf(route);
      // The place in a file is known without the text of the route.
      found = { origin: at && (placeAt(at.packed, at.index).origin ?? routeAt(at.packed, at.index).origin) };
      this.#origins.set(route, found);
    }
    return found.origin;
  }

  originOfGroup(name: string): Origin | undefined {
    return this.#groups.get(name);
  }

  originOfListener(key: string): Origin | undefined {
    return this.#listeners.get(key)?.origin;
  }

  /** The policies in effect for a phase. */
  ofPhase(phase: Phase, chosen: Chosen): PolicyOrigins {
    const { listener, parents, route, backend } = chosen;
    const owner = { gateway: listener, route, backend }[phase];
    if (owner === undefined) return {};
    const found = this.#phases.get(owner);
    // Several routes may have delegated to one.
    if (found?.parents.length === parents.length && found.parents.every((each, i) => each === parents[i]))
      return found.origins;
    const origins = this.#read(phase, chosen);
    this.#phases.set(owner, { parents, origins });
    return origins;
  }

  #read(phase: Phase, { listener, parents, route, backend }: Chosen): PolicyOrigins {
    if (phase === "gateway") return listener === undefined ? {} : this.#ofListener(listener.key);
    if (route === undefined) return {};
    if (phase === "route") return this.#ofRoute(parents, route);
    return backend === undefined ? {} : this.#ofBackend(route, backend);
  }

  /** What ended a request with an error. `code`: undefined if it has none. `decider`: undefined if no policy and no match did. */
  ofError(
    code: ErrorCode | undefined,
    decider: Decider | undefined,
    chosen: Chosen,
    frontend: Pick<Frontend, "origins">,
  ): Origin | undefined {
    if (decider !== undefined)
      return "route" in decider ? this.originOf(decider.route) : this.ofPolicy(decider, chosen);
    const { listener, route, backend } = chosen;
    const about = code && ABOUT[code];
    if (about === undefined) return originInFrontend(code, frontend);
    if (route === undefined) return this.#ofNoRoute(code, listener);
    if (about === "timeout") return this.ofPolicy({ policy: "timeout", phase: "route" }, chosen);
    return (about === "backend" ? this.#originOfBackend(route, backend) : undefined) ?? this.originOf(route);
  }

  /** What ended a connection or session without HTTP with an error of this code. */
  ofConnectionError(
    code: ErrorCode,
    { listener, route, backend }: ChosenForConnection,
    frontend: Pick<Frontend, "origins">,
  ): Origin | undefined {
    const about = ABOUT[code];
    if (about === undefined) return originInFrontend(code, frontend);
    if (route === undefined) return this.#ofNoRoute(code, listener);
    const { origin, backends } = route;
    return about === "backend" && backend !== undefined ? originOfBackend(origin, backends.indexOf(backend)) : origin;
  }

  /** Without any route to compare, the listener has decided. */
  #ofNoRoute(code: ErrorCode | undefined, listener: Chosen["listener"]): Origin | undefined {
    return code === "TG_ROUTE_NOT_FOUND" && listener !== undefined ? this.originOfListener(listener.key) : undefined;
  }

  /** The origin of a backend of the route; undefined if the route has no such backend. */
  #originOfBackend(route: Compiled, backend: object | undefined): Origin | undefined {
    const index = backend === undefined ? -1 : route.backends.indexOf(backend);
    if (backend === undefined || index < 0) return undefined;
    let found = this.#origins.get(backend);
    if (found === undefined) {
      const written = this.#find(route);
      const own = written?.backends[index];
      found = { origin: own && originOfBackend(written?.origin, index, own.at) };
      this.#origins.set(backend, found);
    }
    return found.origin;
  }

  ofPolicy({ policy, phase, rule = 0 }: DecidingPolicy, chosen: Chosen): Origin | undefined {
    return this.ofPhase(phase, chosen)[policy]?.[rule];
  }

  #ofListener(key: string): PolicyOrigins {
    const listener = this.#listeners.get(key);
    return listener === undefined ? {} : originsOf(listener, listener.origin, ["policies"], this.#containers);
  }

  #ofRoute(parents: readonly Compiled[], route: Compiled): PolicyOrigins {
    const levels = [...parents, route].map((each) => {
      const written = this.#find(each);
      const sources = written === undefined ? {} : originsOf(written, written.origin, ["policies"], this.#containers);
      return { set: each.policySet, sources };
    });
    return mergeLevels<Origin>(...levels).sources as PolicyOrigins;
  }

  #ofBackend(route: Compiled, backend: object): PolicyOrigins {
    const written = this.#find(route);
    const index = route.backends.indexOf(backend);
    const own = written?.backends[index];
    return written === undefined || own === undefined
      ? {}
      : originsOf(own, written.origin, ["backends", index, "policies"], this.#containers);
  }

  #find(route: Compiled): Route | undefined {
    const at = this.#placeOf(route);
    return at && { ...routeAt(at.packed, at.index), ...placeAt(at.packed, at.index) };
  }

  #placeOf(route: Named): { readonly packed: PackedRoutes; readonly index: number } | undefined {
    for (const { packed, indexes } of this.#owners) {
      const index = indexes.indexOf(route);
      if (index !== undefined) return { packed, index };
    }
    return undefined;
  }
}
