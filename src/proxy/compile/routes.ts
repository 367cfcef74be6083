/**
 * Compiles the routes of listeners and route groups into their routers. An unchanged route is taken over from the configuration in effect,
 * even if the endpoints of its services have changed: that costs 2 % of compiling it, and no route is in memory twice.
 */
import { messageOf } from "../../base/errors.ts";
import type { Ir, Route, TcpRoute } from "../../ir/ir.ts";
import { placeName } from "../../ir/origins.ts";
import { digestAt, groupOwner, type PackedRoutes, routeAt } from "../../ir/packed-ir.ts";
import { compilePolicies } from "../../policies/compile.ts";
import { NO_POLICY_SET } from "../../policies/merge.ts";
import { type KnownRoute, type Router, RouterBuilder } from "../match/router.ts";
import type { Services } from "../services/services.ts";
import type { AddressBook } from "./address-book.ts";
import type { Backends } from "./backends.ts";
import type { CompiledBackend, CompiledRoute, CompiledTcpRoute } from "./compiled.ts";
import type { Outbound } from "./outbound.ts";
import { Provenance } from "./provenance.ts";
import { type FixedLabels, listenerLabels, SeriesCache, UNROUTED } from "./series-cache.ts";

/** The compiled routes of a listener or group, in the order of the packed ones. */
class KnownRoutes {
  readonly #routes: KnownRoute<CompiledRoute>[] = [];
  /** By digest. */
  readonly #indexes = new Map<string, number>();

  add(digest: string, known: KnownRoute<CompiledRoute>): void {
    this.#indexes.set(digest, this.#routes.push(known) - 1);
  }

  get(digest: string): KnownRoute<CompiledRoute> | undefined {
    return this.#routes[this.#indexes.get(digest) ?? -1];
  }

  /** Undefined: it is not the route of this listener or group, though that may have an equal one. */
  indexOf(route: Pick<CompiledRoute, "digest">): number | undefined {
    const index = this.#indexes.get(route.digest) ?? -1;
    return this.#routes[index]?.route === route ? index : undefined;
  }
}

/** What the routes of a configuration were compiled from, and the routes themselves, by owner and labels. */
export interface FormerRoutes {
  readonly customFunctions: string;
  readonly addresses: AddressBook;
  readonly routes: ReadonlyMap<string, KnownRoutes>;
}

/** Where the routes of a listener or group go. */
interface Owner {
  readonly router: RouterBuilder<CompiledRoute>;
  readonly labels: FixedLabels;
  readonly known: KnownRoutes;
  /** Its routes in the configuration in effect. */
  readonly before: KnownRoutes | undefined;
}

export type RouteServices = Pick<Services, "metrics" | "unknownValues">;

export class Routes {
  /** For the next configuration to take over. */
  readonly known = new Map<string, KnownRoutes>();
  readonly provenance: Provenance;
  readonly #owners = new Map<string, Owner>();
  readonly #backends: Backends;
  readonly #outbound: Outbound;
  readonly #services: RouteServices;
  readonly #before: FormerRoutes | undefined;

  /** `before` is the configuration in effect: none of its routes is taken over if the functions of expressions have changed. */
  constructor(ir: Ir, backends: Backends, outbound: Outbound, services: RouteServices, before?: FormerRoutes) {
    this.provenance = new Provenance(ir);
    this.#backends = backends;
    this.#outbound = outbound;
    this.#services = services;
    this.#before = before?.customFunctions === (ir.customFunctions ?? "") ? before : undefined;
    for (const bind of ir.binds)
      for (const listener of bind.listeners) this.#addOwner(listener.key, listenerLabels(bind.key, listener));
    for (const { name } of ir.routeGroups) this.#addOwner(groupOwner(name), { ...UNROUTED, bind: "unknown" });
  }

  #addOwner(key: string, labels: FixedLabels): void {
    const known = new KnownRoutes();
    const name = `${key} ${JSON.stringify(labels)}`;
    this.#owners.set(key, {
      router: new RouterBuilder(this.#services.unknownValues),
      labels,
      known,
      before: this.#before?.routes.get(name),
    });
    this.known.set(name, known);
  }

  /** Adds a route in each step. */
  *add(routes: PackedRoutes): Generator<void, void> {
    const owner = this.#owners.get(routes.owner);
    if (owner === undefined) return;
    this.provenance.add(routes, owner.known);
    for (let index = 0; index < routes.count; index++) {
      const digest = digestAt(routes, index);
      owner.known.add(digest, this.#takeOver(owner, digest) ?? this.#compileNew(owner, digest, routeAt(routes, index)));
      yield;
    }
  }

  /** The router of a listener or group, once all routes have been added. */
  router(owner: string): Router<CompiledRoute> {
    return (this.#owners.get(owner)?.router ?? new RouterBuilder<CompiledRoute>()).finish();
  }

  /** The same route of the configuration in effect; undefined if it has changed or is new. */
  #takeOver({ router, before }: Owner, digest: string): KnownRoute<CompiledRoute> | undefined {
    const known = before?.get(digest);
    if (known === undefined || this.#before === undefined) return undefined;
    const { backends, uses } = known.route;
    if (!this.#outbound.takeOver(uses, this.#before.addresses)) return undefined;
    this.#backends.takeOver(backends);
    router.addKnown(known);
    return known;
  }

  /** @throws Error that names the route */
  #compileNew(owner: Owner, digest: string, route: Route): KnownRoute<CompiledRoute> {
    try {
      return this.#compile(owner, digest, route);
    } catch (cause) {
      throw new Error(`route ${route.namespace}/${route.name}: ${messageOf(cause)}`, { cause });
    }
  }

  #compile({ router, labels: ofOwner }: Owner, digest: string, route: Route): KnownRoute<CompiledRoute> {
    const part = this.#outbound.route;
    const label = `${route.namespace}/${route.name}`;
    const labels = { ...ofOwner, route: label, route_rule: route.ruleName ?? "unknown" };
    const backends = route.backends.map((backend) => this.#backends.compile(backend, labels, "request", part));
    return router.add(route, {
      only: onlyBackend(backends),
      policies: compilePolicies(route.policies, "route", part.environment, route.key, (kind) =>
        placeName(kind, route, route.key),
      ),
      key: route.key,
      createdAt: route.createdAt ?? 0,
      label,
      rule: route.ruleName,
      policySet: Object.keys(route.policies).length === 0 ? NO_POLICY_SET : route.policies,
      ...(route.sources && { sources: route.sources }),
      backends,
      totalWeight: totalWeight(backends),
      series: new SeriesCache(this.#services.metrics, labels),
      digest,
      uses: this.#outbound.routeUses(),
    });
  }

  /** Compiles a route of TCP, TLS or UDP, which is not taken over. */
  tcpRoute(route: TcpRoute, owner: FixedLabels): CompiledTcpRoute {
    const label = `${route.namespace}/${route.name}`;
    const labels = { ...owner, route: label };
    const { whole } = this.#outbound;
    const backends = route.backends.map((backend) => this.#backends.compile(backend, labels, "network", whole));
    const { origin, hostnames } = route;
    return { label, origin, hostnames, backends, totalWeight: totalWeight(backends) };
  }
}

function totalWeight(backends: readonly CompiledBackend[]): number {
  return backends.reduce((sum, backend) => sum + backend.weight, 0);
}

function onlyBackend(backends: readonly CompiledBackend[]): CompiledBackend | undefined {
  const [first, ...others] = backends;
  if (first === undefined || others.length > 0) return undefined;
  return first.weight > 0 && first.target.type !== "routeGroup" ? first : undefined;
}
