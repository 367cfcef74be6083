import { Endpoint } from "../endpoints/endpoint.ts";
import type { Held } from "../endpoints/endpoints.ts";
import type { NamedEndpoints } from "../endpoints/named-endpoints.ts";
import type { Balancer, PassedOver, Tiers } from "./balancer.ts";

/** Makes the balancer of these endpoints. */
export type MakeBalancer = (tiers: Tiers<Endpoint>) => Balancer;

/**
 * The balancer of endpoints some of which are addresses of names. The first request after a change of the addresses rebuilds it. It
 * subscribes to nothing, so it is garbage once no configuration refers to it. A request costs one comparison for each name.
 */
export class NamesBalancer implements Balancer {
  /** Every one is released by the configuration. */
  readonly held: readonly Held[];
  readonly #tiers: Tiers<Held>;
  readonly #names: readonly NamedEndpoints[];
  readonly #versions: number[];
  readonly #make: MakeBalancer;
  #current: Balancer;

  constructor(tiers: Tiers<Held>, make: MakeBalancer) {
    this.held = tiers.flat(2);
    this.#tiers = tiers;
    this.#names = this.held.filter((each): each is NamedEndpoints => !(each instanceof Endpoint));
    this.#versions = this.#names.map(({ version }) => version);
    this.#make = make;
    this.#current = make(this.#withAddresses());
  }

  get endpoints(): readonly Endpoint[] {
    return this.#latest().endpoints;
  }

  choose(key?: Uint8Array, failed?: ReadonlySet<Endpoint>, evicted?: Endpoint[]): Endpoint | undefined {
    for (const name of this.#names) name.use();
    return this.#latest().choose(key, failed, evicted);
  }

  hasOther(endpoint: Endpoint, failed?: ReadonlySet<Endpoint>): boolean {
    return this.#latest().hasOther(endpoint, failed);
  }

  whyBeyond(chosen: Endpoint): string | undefined {
    return this.#latest().whyBeyond?.(chosen);
  }

  passedOver(chosen: Endpoint | undefined): readonly PassedOver[] {
    return this.#latest().passedOver?.(chosen) ?? [];
  }

  find(name: string): Endpoint | undefined {
    for (const each of this.#names) each.use();
    return this.#latest().find(name);
  }

  #latest(): Balancer {
    const names = this.#names;
    const versions = this.#versions;
    let same = true;
    for (let i = 0; i < names.length; i++) {
      const version = names[i]?.version as number;
      if (versions[i] === version) continue;
      versions[i] = version;
      same = false;
    }
    if (!same) this.#current = this.#make(this.#withAddresses());
    return this.#current;
  }

  /** A tier becomes several if a name in it has addresses of several ranks: those of higher ranks are backups. */
  #withAddresses(): Tiers<Endpoint> {
    return this.#tiers.flatMap((tier) => {
      const buckets = tier.map((bucket) => bucket.map((each) => (each instanceof Endpoint ? [[each]] : each.ranks)));
      const ranks = Math.max(1, ...buckets.flat().map(({ length }) => length));
      return Array.from({ length: ranks }, (_, rank) =>
        buckets.map((bucket) => bucket.flatMap((own) => own[rank] ?? [])),
      );
    });
  }
}
