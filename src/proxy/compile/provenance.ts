/**
 * Where what a request met was written, for its trace. Nothing is kept for this but the packed routes, which are shared memory: a compiled
 * route is found by its place among the others, in about 0.1 ms of 10,000.
 */
import type { Origin } from "../../base/origin.ts";
import type { Ir, Listener, Route } from "../../ir/ir.ts";
import { type Containers, originsOf, type PolicyOrigins } from "../../ir/origins.ts";
import { type PackedRoutes, placeAt, routeAt } from "../../ir/packed-ir.ts";
import { mergeLevels } from "../../policies/merge.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { KnownRoute } from "../match/router.ts";

/** A compiled route, as far as this goes. */
interface Compiled {
  readonly key: string;
  readonly policySet: PolicySet;
  readonly backends: readonly object[];
}

type KnownRoutes = ReadonlyMap<string, KnownRoute<Compiled>>;

export class Provenance {
  readonly #listeners: ReadonlyMap<string, Pick<Listener, "policies" | "sources" | "origin">>;
  readonly #containers: Containers;
  readonly #owners: { readonly packed: PackedRoutes; readonly known: KnownRoutes }[] = [];

  constructor({ binds, backends, targeted }: Pick<Ir, "binds" | "backends" | "targeted">) {
    this.#listeners = new Map(binds.flatMap(({ listeners }) => listeners.map((listener) => [listener.key, listener])));
    this.#containers = {
      backends: backends.map(({ key, name, namespace, origin }) => ({
        key,
        name,
        ...(namespace !== undefined && { namespace }),
        ...(origin !== undefined && { origin }),
      })),
      targeted: targeted.flatMap(({ name, origin }) =>
        name === null || origin === undefined ? [] : [{ name, origin }],
      ),
    };
  }

  /** `known`: the compiled routes, in the same order. */
  add(packed: PackedRoutes, known: KnownRoutes): void {
    this.#owners.push({ packed, known });
  }

  /** Of routes, by their keys. */
  ofRoutes(keys: ReadonlySet<string>): ReadonlyMap<string, Origin> {
    const found = new Map<string, Origin>();
    for (const { packed, known } of this.#owners) {
      if (found.size === keys.size) break;
      let index = 0;
      for (const { route } of known.values()) {
        if (keys.has(route.key)) {
          const origin = routeWithPlace(packed, index).origin;
          if (origin !== undefined) found.set(route.key, origin);
        }
        index++;
      }
    }
    return found;
  }

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

  #find(wanted: Compiled): Route | undefined {
    for (const { packed, known } of this.#owners) {
      let index = 0;
      for (const { route } of known.values()) {
        if (route === wanted) return routeWithPlace(packed, index);
        index++;
      }
    }
    return undefined;
  }
}

function routeWithPlace(packed: PackedRoutes, index: number): Route {
  return { ...routeAt(packed, index), ...placeAt(packed, index) };
}
