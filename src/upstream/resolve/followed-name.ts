/**
 * A host name whose addresses are endpoints (decision 78). In: the name, and whether it is used. Out: its addresses, again whenever they
 * change. The name is looked up when it is first used, then as often as its TTL says, until it has not been used for a while.
 */
import type { DnsSettings } from "../discovery/dns.ts";
import { endpointsOf, type NamedAddress } from "./named-addresses.ts";
import type { LookedUp, Resolver } from "./resolver.ts";

const MIN_TTL_MS = 5000;
/** Longer TTLs are cut to this: an operator who changes a record with a TTL of a day waits no longer. */
const MAX_TTL_MS = 60_000;
/** After this many milliseconds without use, a name is no longer looked up, and its addresses are forgotten. */
const UNUSED_MS = 300_000;

export type OnAddresses = (addresses: readonly NamedAddress[]) => void;

/** A name with addresses that change. */
export interface Followed {
  /** A request may use the addresses. */
  use(): void;
  close(): void;
}

export interface NameToFollow {
  readonly host: string;
  /** SRV records that give hosts and ports, in place of `host`. */
  readonly srv?: string | undefined;
  readonly dns?: DnsSettings | undefined;
  /** It counts as used all the time. */
  readonly always: boolean;
}

export class FollowedName implements Followed {
  readonly #name: NameToFollow;
  readonly #resolver: Resolver;
  readonly #onAddresses: OnAddresses;
  #used = false;
  #usedAt = 0;
  #state: "asleep" | "following" | "closed" = "asleep";
  #cancel: () => void = () => {};

  /** Nothing is looked up before the first `use`. `onAddresses` is called after each lookup that has found some; an empty list: they are no longer known. */
  constructor(name: NameToFollow, resolver: Resolver, onAddresses: OnAddresses) {
    this.#name = name;
    this.#resolver = resolver;
    this.#onAddresses = onAddresses;
    // Not at once: the constructor of its owner has not returned yet.
    if (name.always) this.#cancel = resolver.system.idly(() => this.use(), 0);
  }

  use(): void {
    this.#used = true;
    if (this.#state === "asleep") this.#begin();
  }

  close(): void {
    this.#state = "closed";
    this.#cancel();
  }

  #begin(): void {
    this.#state = "following";
    this.#lookUp();
  }

  #again(ms: number): void {
    this.#cancel();
    this.#cancel = this.#resolver.system.idly(() => this.#lookUp(), ms);
  }

  #lookUp(): void {
    const { system } = this.#resolver;
    const now = system.now();
    if (this.#used || this.#name.always) this.#usedAt = now;
    this.#used = false;
    if (now - this.#usedAt >= UNUSED_MS) {
      this.#state = "asleep";
      this.#onAddresses([]);
      return;
    }
    const { host, srv, dns = {} } = this.#name;
    const minTtl = dns.minTtl ?? MIN_TTL_MS;
    const found = (endpoints: readonly NamedAddress[], repeatMs: number): void => {
      if (this.#state === "closed") return;
      // If there are none, the last ones stay in use.
      this.#again(endpoints.length === 0 ? repeatMs : minTtl);
      if (endpoints.length > 0) this.#onAddresses(endpoints);
    };
    if (srv !== undefined) {
      this.#resolver.services.lookUp(srv, dns.family, ({ servers, repeatMs }) => found(servers, repeatMs));
      return;
    }
    const answered = ({ addresses, repeatMs }: LookedUp): void => {
      found(endpointsOf(addresses, this.#resolver.prefersIpv4(dns.family), system.reaches), repeatMs);
      if (addresses.length === 0) return;
      system.ttl(host, addresses, (ttl = 0) => {
        const left = Math.min(ttl, MAX_TTL_MS) - (system.now() - now);
        if (this.#state === "following" && left > minTtl) this.#again(left);
      });
    };
    this.#resolver.lookUp(host, answered, dns.family);
  }
}
