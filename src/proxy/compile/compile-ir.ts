/**
 * Compiles a configuration in passes, each of which takes the results of those before it: addresses, what is called (outbound.ts),
 * backends, routes, binds with their listeners.
 */
import { groupOwner, type PackedIr } from "../../ir/packed-ir.ts";
import type { Destinations } from "../../upstream/destinations/destinations.ts";
import type { BackendCalls, Endpoints, Held } from "../../upstream/endpoints/endpoints.ts";
import type { RetryBudget } from "../../upstream/endpoints/retry-budget.ts";
import { addGatewayFields } from "../fields/client-fields.ts";
import { AddressBook } from "./address-book.ts";
import { Backends } from "./backends.ts";
import { type BindServices, Binds, type CachedTerminator } from "./binds.ts";
import type { CompiledBind } from "./compiled.ts";
import { Outbound, type OutboundServices } from "./outbound.ts";
import { Rejections } from "./rejections.ts";
import { type FormerRoutes, type RouteServices, Routes } from "./routes.ts";

/** One compiled configuration. */
export interface Generation extends FormerRoutes {
  readonly generation: number;
  readonly binds: ReadonlyMap<string, CompiledBind>;
  /** Held as long as the generation exists; released afterwards. */
  readonly endpoints: readonly Held[];
  readonly calls: ReadonlyMap<string, BackendCalls>;
  /** By the key of the budget. */
  readonly budgets: ReadonlyMap<string, RetryBudget>;
  readonly destinations: Destinations;
  /** By the key of the listener. */
  readonly terminators: ReadonlyMap<string, CachedTerminator>;
}

export type CompilerServices = OutboundServices & BindServices & RouteServices;

/**
 * A step compiles one route or listener, or reads one address, so that requests are served in between; the caller may stop after any step,
 * and the generator then releases its resources. `before` is the configuration in effect.
 */
export function* compileIr(
  generation: number,
  { frame: ir, routes: packed, addresses: packedAddresses }: PackedIr,
  services: CompilerServices,
  endpoints: Endpoints,
  before?: Generation,
): Generator<void, Generation> {
  const { metrics } = services;
  const addresses = yield* AddressBook.reading(packedAddresses, before?.addresses);
  const outbound = new Outbound(ir, addresses, services, endpoints, before?.destinations.former);
  const { destinations, environment } = outbound;
  const backends = new Backends(outbound, endpoints, metrics);
  let complete = false;
  try {
    const routes = new Routes(ir, backends, outbound, services, before);
    const rejections = new Rejections();
    for (const each of packed) yield* rejections.noting(each.owner, routes.add(each));
    addGatewayFields(environment, ir.binds);
    const groups = new Map(ir.routeGroups.map(({ name }) => [name, routes.router(groupOwner(name))]));
    const certificates = ir.binds.flatMap(({ listeners }) => listeners.flatMap(({ acme }) => acme ?? []));
    const compiler = new Binds(certificates, generation, routes, outbound, services, before?.terminators);
    const binds = new Map<string, CompiledBind>();
    for (const bind of ir.binds) binds.set(bind.key, yield* compiler.compile(bind, groups, rejections));
    rejections.check();
    outbound.finish();
    complete = true;
    return {
      generation,
      binds,
      endpoints: destinations.held,
      calls: backends.calls,
      budgets: backends.budgets,
      addresses,
      destinations,
      terminators: compiler.terminators,
      customFunctions: ir.customFunctions ?? "",
      routes: routes.known,
    };
  } finally {
    if (!complete) endpoints.drop({ endpoints: destinations.held, calls: backends.calls });
  }
}

/** Takes all steps at once. */
export function inOneGo<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
