/**
 * A host name whose addresses are endpoints (decision 78). In: the name, and whether it is used. Out: its addresses, again whenever they
 * change. The name is looked up when it is first used, then as often as its TTL says, and no more once it has not been used for a while.
 */
import { isIP } from "node:net";
import { isLoopback } from "../../base/host-addresses.ts";
import { ipBytes } from "../../base/ip-address.ts";
import type { DnsSettings } from "../discovery/dns.ts";
import type { Resolver, System } from "./resolver.ts";

const MIN_TTL_MS = 5000;
/** Records may be older than this in no case: it is what an operator waits who has changed a record with a TTL of a day. */
const MAX_TTL_MS = 60_000;
/** Milliseconds without use after which a name is looked up no more, and its addresses are forgotten. */
const UNUSED_MS = 300_000;

/** One endpoint of a name. */
export interface NamedAddress {
  /** One address, or one of each family: then they are taken for one server, and connections try the second if the first fails. */
  readonly at: readonly string[];
  /** 0: gets requests first; others only while all with a lower rank take none. */
  readonly rank: number;
  /** Its part of the weight of the name. */
  readonly share: number;
}

export type OnAddresses = (addresses: readonly NamedAddress[]) => void;

/** A name with addresses that change. */
export interface Followed {
  /** A request may use the addresses. */
  use(): void;
  close(): void;
}

export interface NameToFollow {
  readonly host: string;
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

  /** Nothing is looked up before the first `use`. `onAddresses` is called after each lookup that has found some; an empty list: they are not known any more. */
  constructor(name: NameToFollow, resolver: Resolver, onAddresses: OnAddresses) {
    this.#name = name;
    this.#resolver = resolver;
    this.#onAddresses = onAddresses;
    // Whoever makes it is not complete yet.
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
    const { host, dns = {} } = this.#name;
    this.#resolver.lookUp(
      host,
      ({ addresses, repeatMs }) => {
        if (this.#state === "closed") return;
        if (addresses.length === 0) {
          // The last addresses stay in use.
          this.#again(repeatMs);
          return;
        }
        const minTtl = dns.minTtl ?? MIN_TTL_MS;
        this.#again(minTtl);
        system.ttl(host, addresses, (ttl = 0) => {
          const left = Math.min(ttl, MAX_TTL_MS) - (system.now() - now);
          if (this.#state === "following" && left > minTtl) this.#again(left);
        });
        this.#onAddresses(endpointsOf(addresses, this.#resolver.prefersIpv4(dns.family), system));
      },
      dns.family,
    );
  }
}

/**
 * The endpoints that the addresses of a name are. One address of each family is one server with two ways to it, as `localhost` is; if there
 * are more, each is an endpoint. Where IPv4 comes first, addresses of IPv6 are backups. Sorted, because answers have them in any order.
 */
function endpointsOf(addresses: readonly string[], prefersIpv4: boolean, system: System): readonly NamedAddress[] {
  const reachable = withoutUnreachable(addresses, system);
  const v4 = reachable.filter((address) => isIP(address) === 4);
  const v6 = reachable.filter((address) => isIP(address) === 6);
  if (v4.length <= 1 && v6.length <= 1)
    return [{ at: prefersIpv4 ? [...v4, ...v6] : [...v6, ...v4], rank: 0, share: 1 }];
  const endpoint = (address: string, rank: number): NamedAddress => ({ at: [address], rank, share: 1 });
  const backup = prefersIpv4 && v4.length > 0 ? 1 : 0;
  return [...v4.toSorted().map((each) => endpoint(each, 0)), ...v6.toSorted().map((each) => endpoint(each, backup))];
}

/** Without those of a family that this host cannot reach, unless they are all: many names have addresses of IPv6, and many hosts do not. */
function withoutUnreachable(addresses: readonly string[], { reaches }: System): readonly string[] {
  const reachable = addresses.filter((address) => {
    const bytes = ipBytes(address);
    return (bytes !== undefined && isLoopback(bytes)) || reaches(isIP(address));
  });
  return reachable.length > 0 ? reachable : addresses;
}
