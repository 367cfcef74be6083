/**
 * Where what a request met was written, for its trace. Nothing is kept for this but the packed routes, which are shared memory: a compiled
 * route is found in them by its index.
 */
import type { Origin } from "../../base/origin.ts";
import type { Ir, Listener, Route } from "../../ir/ir.ts";
import { type Containers, originsOf, type PolicyOrigins } from "../../ir/origins.ts";
import { type PackedRoutes, placeAt, routeAt } from "../../ir/packed-ir.ts";
import { mergeLevels } from "../../policies/merge.ts";
import type { PolicySet } from "../../policies/policy-set.ts";

/** A compiled route, as far as this goes. */
interface Compiled {
  readonly digest: string;
  readonly policySet: PolicySet;
  readonly backends: readonly object[];
}

interface Indexes {
  /** The place of a route among the packed ones; undefined: it is none of them. */
  indexOf(route: Compiled): number | undefined;
}

export class Provenance {
  readonly #listeners: ReadonlyMap<string, Pick<Listener, "policies" | "sources" | "origin">>;
  readonly #groups: ReadonlyMap<string, Origin | undefined>;
  readonly #containers: Containers;
  readonly #owners: { readonly packed: PackedRoutes; readonly indexes: Indexes }[] = [];

  constructor({ binds, backends, targeted, routeGroups }: Pick<Ir, "binds" | "backends" | "targeted" | "routeGroups">) {
    this.#groups = new Map(routeGroups.map(({ name, origin }) => [name, origin]));
    this.#listeners = new Map(binds.flatMap(({ listeners }) => listeners.map((listener) => [listener.key, listener])));
    this.#containers = {
      backends: backends.flatMap(({ key, origin }) => (origin === undefined ? [] : [{ key, origin }])),
      targeted: targeted.flatMap(({ name, origin }) =>
        name === null || origin === undefined ? [] : [{ name, origin }],
      ),
    };
  }

  add(packed: PackedRoutes, indexes: Indexes): void {
    this.#owners.push({ packed, indexes });
  }

  /** The route itself. */
  originOf(route: Compiled): Origin | undefined {
    const at = this.#placeOf(route);
    // The place in a file is known without the text of the route.
    return at && (placeAt(at.packed, at.index).origin ?? routeAt(at.packed, at.index).origin);
  }

  originOfGroup(name: string): Origin | undefined {
    return this.#groups.get(name);
  }

  originOfListener(key: string): Origin | undefined {
    return this.#listeners.get(key)?.origin;
  }

  /** The policies of a listener. */
  ofListener(key: string): PolicyOrigins {
    const listener = this.#listeners.get(key);
    return listener === undefined ? {} : originsOf(listener, listener.origin, ["policies"], this.#containers);
  }

  /** `parents`: the routes that delegated to it, the outermost first. */
  ofRoute(parents: readonly Compiled[], route: Compiled): PolicyOrigins {
    const levels = [...parents, route].map((each) => {
      const written = this.#find(each);
      const sources = written === undefined ? {} : originsOf(written, written.origin, ["policies"], this.#containers);
      return { set: each.policySet, sources };
    });
    return mergeLevels<Origin>(...levels).sources as PolicyOrigins;
  }

  ofBackend(route: Compiled, backend: object): PolicyOrigins {
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

  #placeOf(route: Compiled): { readonly packed: PackedRoutes; readonly index: number } | undefined {
    for (const { packed, indexes } of this.#owners) {
      const index = indexes.indexOf(route);
      if (index !== undefined) return { packed, index };
    }
    return undefined;
  }
}
