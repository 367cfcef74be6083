/**
 * What one configuration calls: the destinations of backends and the callouts of policies, each made for the first reference to it. Every
 * part of the configuration records in its `Uses` what it refers to.
 */
import { CelEnvironment } from "../../cel/index.ts";
import type { Ir } from "../../ir/ir.ts";
import { compileCallPolicies } from "../../policies/calls/compile.ts";
import type { PolicyEnvironment, ThreadEnvironment } from "../../policies/contract/deps.ts";
import type { CalloutContext } from "../../policies/contract/types.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { CallPolicies } from "../../policies/schema/call.ts";
import { Callout, NO_UPSTREAM } from "../../upstream/callouts/callout.ts";
import {
  connectionOf,
  type Destination,
  Destinations,
  proxyService,
} from "../../upstream/destinations/destinations.ts";
import type { DynamicConnection } from "../../upstream/destinations/dynamic.ts";
import { withLocalityOfNode } from "../../upstream/discovery/locality.ts";
import type { Endpoints } from "../../upstream/endpoints/endpoints.ts";
import type { HealthCheck } from "../../upstream/endpoints/health-check.ts";
import { settingsIdentity } from "../../upstream/settings/pool-target.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { Services } from "../services/services.ts";
import type { AddressBook } from "./address-book.ts";
import { type TrackedCallout, Uses } from "./uses.ts";

/** A part of the configuration while it is compiled. */
export interface Part {
  readonly uses: Uses;
  /** For its policies: records in `uses` what they refer to. */
  readonly environment: PolicyEnvironment;
}

/** Cut when the configuration is complete: a policy may keep its environment and outlive the configuration. */
interface Link {
  outbound: Outbound | undefined;
}

export type OutboundServices = Pick<Services, "policies" | "locality" | "random">;

export class Outbound {
  readonly destinations: Destinations;
  /** For policies that are compiled when routes delegate, while requests are served: they make no new callouts. */
  readonly environment: PolicyEnvironment;
  /** What belongs to no route. Its uses are those of the whole configuration. */
  readonly whole: Part;
  readonly #base: ThreadEnvironment & Pick<PolicyEnvironment, "cel">;
  readonly #addresses: AddressBook;
  readonly #callouts = new Map<string, TrackedCallout>();
  readonly #link: Link = { outbound: this };
  #route: Part;
  /** Shared by all routes that use the same destination, or none, and nothing else. */
  readonly #ofDestination = new Map<Destination | undefined, Uses>();

  /** `before`: the destinations of the configuration in effect. Throws CelError for functions that cannot be used. */
  constructor(
    { customFunctions = "" }: Pick<Ir, "customFunctions">,
    addresses: AddressBook,
    { policies, locality, random }: OutboundServices,
    endpoints: Endpoints,
    before?: Destinations["former"],
  ) {
    this.#base = { ...policies, cel: CelEnvironment.defining(customFunctions) };
    this.#addresses = addresses;
    const place = withLocalityOfNode(locality, addresses.workloads);
    this.destinations = new Destinations(endpoints, addresses.index, place, random, before);
    this.whole = this.#newPart();
    this.#route = this.#newPart();
    const callouts: PolicyEnvironment["callouts"] = (target, calls) => this.callout(target, calls, this.whole.uses);
    this.environment = { ...this.whole.environment, callouts };
  }

  #newPart(): Part {
    const uses = new Uses();
    return { uses, environment: recording(this.#link, this.#base, uses) };
  }

  /** The next route, until `routeUses` ends it. */
  get route(): Part {
    return this.#route;
  }

  /** What the route has used, which is added to the whole. */
  routeUses(): Uses {
    const { uses } = this.#route;
    this.include(uses);
    if (!uses.destinationsOnly || uses.destinations.size > 1) {
      this.#route = this.#newPart();
      return uses;
    }
    const [destination] = uses.destinations;
    uses.destinations.clear();
    let shared = this.#ofDestination.get(destination);
    if (shared === undefined) {
      shared = new Uses();
      if (destination !== undefined) shared.destinations.add(destination);
      this.#ofDestination.set(destination, shared);
    }
    return shared;
  }

  /** Whether what `uses` refers to is still the same in this configuration; if so, it is held. `before`: the addresses then. */
  takeOver(uses: Uses, before: AddressBook): boolean {
    const { index } = this.#addresses;
    for (const proxy of uses.proxies) if (!before.index.isSame(proxy, index.find(proxy))) return false;
    for (const destination of uses.destinations) this.destinations.takeOver(destination);
    this.include(uses);
    return true;
  }

  /** Adds the uses of a route to the whole. Callouts are kept for routes that delegate, which are compiled later. */
  include(uses: Uses): void {
    if (uses.destinationsOnly) return;
    this.whole.uses.include(uses);
    for (const [key, known] of uses.callouts) if (!this.#callouts.has(key)) this.#callouts.set(key, known);
  }

  /** Where the calls of a part to a target go. */
  destination(target: Target, policies: PolicySet, uses: Uses, check?: HealthCheck): Destination {
    noteProxy(policies, uses);
    const destination = this.destinations.find(target, policies, check);
    if (destination.balancer !== undefined) uses.destinations.add(destination);
    return destination;
  }

  /** How a part connects to the servers of a `dynamic` backend; undefined = in the default way. */
  dynamicConnection(policies: PolicySet, uses: Uses): DynamicConnection | undefined {
    noteProxy(policies, uses);
    const settings = connectionOf(policies, this.#addresses.index);
    const identity = settingsIdentity(settings);
    return identity === "" ? undefined : { settings, identity };
  }

  /** Policies that call the same target in the same way share a callout. */
  callout(target: Target, policies: CallPolicies = {}, uses = this.whole.uses): Callout<CalloutContext> {
    const key = JSON.stringify([target, policies]);
    let known = this.#callouts.get(key);
    if (known === undefined) {
      const inner = this.#newPart();
      const { balancer } = this.destination(target, policies, inner.uses);
      const prepare = compileCallPolicies(policies, inner.environment);
      known = {
        callout: balancer === undefined ? NO_UPSTREAM : new Callout(balancer, prepare, this.#base.answers),
        uses: inner.uses,
      };
      this.#callouts.set(key, known);
    }
    uses.include(known.uses);
    uses.callouts.set(key, known);
    return known.callout;
  }

  /** Policies must not use their environments any more. */
  finish(): void {
    this.#link.outbound = undefined;
  }
}

/** Separate, so that its result refers to the configuration only through the link. */
function recording(
  link: Link,
  base: ThreadEnvironment & Pick<PolicyEnvironment, "cel">,
  uses: Uses,
): PolicyEnvironment {
  const { credentials, ownFields } = uses;
  const callouts: PolicyEnvironment["callouts"] = (target, policies) => {
    if (link.outbound === undefined) throw new Error("policies use their environment only while they are created");
    return link.outbound.callout(target, policies, uses);
  };
  return { ...base, callouts, credentials, ownFields };
}

function noteProxy(policies: PolicySet, uses: Uses): void {
  const proxy = proxyService(policies);
  if (proxy !== undefined) uses.proxies.add(proxy);
}
