import { isDeepStrictEqual } from "node:util";
import type { Followed, NameToFollow, OnAddresses } from "../resolve/followed-name.ts";
import type { NamedAddress } from "../resolve/named-addresses.ts";
import { type HostAddress, targetName } from "../settings/pool-target.ts";
import type { Endpoint } from "./endpoint.ts";

/** Addresses of one name that are endpoints: headless services have hundreds, and an answer can have thousands. */
const MAX_OF_NAME = 256;
/** The same for all names of a worker together. An endpoint takes about 2 KB. */
const MAX_OF_ALL = 16_384;
/** That many of each name are endpoints, however many others have. */
const FAIR = 8;

/** The addresses of a name that one thread has found, for the others. */
export interface NamesNotice {
  readonly key: string;
  /** Empty: that thread does not follow the name any more. */
  readonly addresses: readonly NamedAddress[];
}

/** How a name is followed: by lookups, or in a rehearsal not at all. */
type Follow = (name: NameToFollow, onAddresses: OnAddresses) => Followed;

/** What the endpoints of a name need of those of the thread. */
interface NamedDeps {
  readonly follow: Follow;
  /** The endpoint that is the name as a whole, whose connections look it up. */
  acquireWhole(): Endpoint;
  acquire(address: NamedAddress): Endpoint;
  release(endpoints: readonly Endpoint[]): void;
  /** For other threads. */
  onFound(notice: NamesNotice): void;
  /** Addresses of all names of the thread that are endpoints. */
  readonly count: { total: number };
}

/**
 * The endpoints of a name: one for each of its addresses, which come and go. Until they are known, and once the name has not been used for a
 * while, it is one endpoint as a whole: its connections look the name up, so requests wait for the first lookup, and get its error.
 */
export class NamedEndpoints {
  readonly key: string;
  /** Changes with the endpoints. */
  version = 0;
  readonly #name: HostAddress;
  readonly #weight: number;
  readonly #deps: NamedDeps;
  readonly #followed: Followed;
  /** By address. */
  #ofAddresses: ReadonlyMap<string, Endpoint> = new Map();
  #whole: Endpoint | undefined;
  #ranks: readonly (readonly Endpoint[])[];
  /** The addresses as they were last set. */
  #addresses: readonly NamedAddress[] = [];
  /** This thread has found them. */
  #isOwn = false;
  #closed = false;

  /** `weight` is divided among the addresses. `watched`: they are probed, so they have to be known although no request uses them. */
  constructor(key: string, name: HostAddress, weight: number, watched: boolean, deps: NamedDeps) {
    this.key = key;
    this.#name = name;
    this.#weight = weight;
    this.#deps = deps;
    this.#whole = deps.acquireWhole();
    this.#ranks = [[this.#whole]];
    this.#followed = deps.follow({ ...name, always: watched }, (addresses) => this.#found(addresses));
  }

  /** By the order in which they get requests: others only while those before take none. */
  get ranks(): readonly (readonly Endpoint[])[] {
    return this.#ranks;
  }

  /** A request may choose one of them. */
  use(): void {
    this.#followed.use();
  }

  /**
   * Another thread has found addresses. They are taken unless this one follows the name too, because answers may differ: a thread that has not
   * used the name knows the endpoints that requests of a session name, and need not wait.
   */
  learn(addresses: readonly NamedAddress[]): void {
    if (!this.#isOwn) this.#set(addresses);
    else if (addresses.length === 0) this.#deps.onFound({ key: this.key, addresses: this.#addresses });
  }

  close(): void {
    this.#closed = true;
    this.#followed.close();
    if (this.#isOwn) this.#deps.onFound({ key: this.key, addresses: [] });
    const { count } = this.#deps;
    count.total -= this.#ofAddresses.size;
    this.#deps.release([...this.#ofAddresses.values(), ...(this.#whole === undefined ? [] : [this.#whole])]);
  }

  #found(addresses: readonly NamedAddress[]): void {
    this.#isOwn = addresses.length > 0;
    if (this.#set(addresses)) this.#deps.onFound({ key: this.key, addresses });
  }

  /** Whether something has changed. */
  #set(all: readonly NamedAddress[]): boolean {
    if (this.#closed) return false;
    const changed = !isDeepStrictEqual(all, this.#addresses);
    if (changed) this.#replace(all);
    this.#dropWhole();
    return changed;
  }

  #dropWhole(): void {
    // Calls that wait for the name as a whole are about to be sent; it stays until a later lookup.
    if (this.#ofAddresses.size === 0 || this.#whole?.pending !== 0) return;
    this.#deps.release([this.#whole]);
    this.#whole = undefined;
  }

  #replace(all: readonly NamedAddress[]): void {
    this.#addresses = all;
    const { count } = this.#deps;
    const before = this.#ofAddresses;
    const room = Math.max(FAIR, Math.min(MAX_OF_NAME, MAX_OF_ALL - count.total + before.size));
    const addresses = all.slice(0, room);
    const endpoints = new Map<string, Endpoint>();
    const ranks: Endpoint[][] = [];
    const shares = Map.groupBy(addresses, ({ rank }) => rank);
    for (const address of addresses) {
      const sum = shares.get(address.rank)?.reduce((all, { share }) => all + share, 0) ?? 1;
      const at = `${address.at.join()} ${address.port}`;
      const endpoint = before.get(at) ?? this.#deps.acquire(address);
      const weight = (this.#weight * address.share) / sum;
      endpoint.capacity = weight;
      const { host } = this.#name.srv === undefined ? this.#name : { host: this.#name.srv };
      const omitted = all.length - addresses.length;
      endpoint.resolved = { of: this.key, host, target: targetName(this.#name), address, weight, omitted };
      endpoints.set(at, endpoint);
      ranks[address.rank] ??= [];
      ranks[address.rank]?.push(endpoint);
    }
    count.total += endpoints.size - before.size;
    this.#ofAddresses = endpoints;
    if (endpoints.size === 0) this.#whole ??= this.#deps.acquireWhole();
    this.#ranks = endpoints.size === 0 && this.#whole !== undefined ? [[this.#whole]] : ranks.filter(Boolean);
    this.version++;
    this.#deps.release([...before].flatMap(([at, endpoint]) => (endpoints.has(at) ? [] : [endpoint])));
  }
}
