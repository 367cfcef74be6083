/**
 * What a proxy last applied, as far as it has changed since. Gateways that share a proxy must not keep each other's changes from it: if the part of one
 * cannot be applied, the others are served what is new, and this one what it had (decision 81). Costs nothing but a note of each change.
 */
import { overlap } from "../../base/hostnames.ts";
import type { Bind, Listener } from "../../ir/ir.ts";
import type { Workload } from "../../upstream/discovery/discovery.ts";
import { gatewayOf } from "../resources.ts";

/** A resource as it was received. */
export interface Received {
  readonly name: string;
  readonly kind: string;
  /** The key of the listener of a route, or of the bind of a listener. */
  readonly owner: string;
}

/** By name, in place of the newest resource; undefined: there is none. */
export type Overrides<Resource extends Received> = ReadonlyMap<string, Resource | undefined>;

/** The newest resources, of both types. */
interface Newest<Resource extends Received> {
  get(name: string): Resource | undefined;
  /** All of a kind. */
  ofKind(kind: string): Iterable<Resource>;
  parse(resource: Resource): unknown;
}

export class FormerResources<Resource extends Received> {
  readonly #newest: Newest<Resource>;
  /** What was applied last of the resources that have changed since, by name; undefined: it did not exist. */
  #applied = new Map<string, Resource | undefined>();
  /** The same of changes that have arrived since the newest resources were taken to be applied. */
  #later = new Map<string, Resource | undefined>();
  #taken: Overrides<Resource> = new Map();

  constructor(newest: Newest<Resource>) {
    this.#newest = newest;
  }

  /** A resource is about to change. */
  note(name: string, before: Resource | undefined): void {
    if (!this.#later.has(name)) this.#later.set(name, before);
  }

  /** What to apply in place of the newest resources, so that some Gateways (`<namespace>/<name>`) keep what they have. */
  take(heldBack: ReadonlySet<string>): Overrides<Resource> {
    for (const [name, before] of this.#later) if (!this.#applied.has(name)) this.#applied.set(name, before);
    this.#later = new Map();
    this.#taken = heldBack.size === 0 ? new Map() : this.#overrides(heldBack);
    return this.#taken;
  }

  /** What was taken last has been applied. */
  accept(): void {
    this.#applied = new Map(this.#taken);
  }

  #overrides(heldBack: ReadonlySet<string>): Overrides<Resource> {
    const overrides = new Map<string, Resource | undefined>();
    const isHeldBack = (listener: Resource | undefined): boolean =>
      listener !== undefined && heldBack.has(gatewayOf(this.#listener(listener)));
    for (const [name, before] of this.#applied) {
      const now = this.#newest.get(name);
      const resource = before ?? now;
      if (resource !== undefined && this.#isKept(resource, now, isHeldBack)) overrides.set(name, before);
    }
    // Since a Gateway gave up a host, another may have got it.
    const others = [...this.#newest.ofKind("listener")].filter((listener) => !isHeldBack(listener));
    for (const [name, before] of overrides)
      if (before?.kind === "listener" && this.#isTaken(before, others)) overrides.set(name, undefined);
    return overrides;
  }

  #isKept(
    resource: Resource,
    now: Resource | undefined,
    isHeldBack: (listener: Resource | undefined) => boolean,
  ): boolean {
    const { kind, owner } = resource;
    switch (kind) {
      case "listener":
        return isHeldBack(resource);
      case "route":
      case "tcpRoute": {
        const name = `listener/${owner}`;
        return isHeldBack(this.#newest.get(name) ?? this.#applied.get(name));
      }
      case "bind":
      case "service":
        return now === undefined;
      case "workload": {
        // A pod that has ended is gone. One whose service no route calls any more may be called by a former route.
        const { services } = this.#newest.parse(resource) as Workload;
        return (
          now === undefined && Object.keys(services).some((key) => this.#newest.get(`service/${key}`) === undefined)
        );
      }
      default:
        return false;
    }
  }

  /** Whether a listener of another Gateway now has some of the hosts of a former one, or its port for another protocol. */
  #isTaken(former: Resource, others: readonly Resource[]): boolean {
    const { hostname } = this.#listener(former);
    const bind = `bind/${former.owner}`;
    const [before, now] = [this.#applied.get(bind), this.#newest.get(bind)];
    const protocolOf = (resource: Resource): string => (this.#newest.parse(resource) as Bind).protocol;
    if (before !== undefined && now !== undefined && protocolOf(before) !== protocolOf(now)) return true;
    return others.some((other) => other.owner === former.owner && overlap(this.#listener(other).hostname, hostname));
  }

  #listener(resource: Resource): Listener {
    return this.#newest.parse(resource) as Listener;
  }
}
