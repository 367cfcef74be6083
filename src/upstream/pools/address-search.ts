import { isIP } from "node:net";
import { AddressRefused } from "../../net/egress.ts";
import { SocketBudget } from "../../net/socket-budget.ts";
import { ConnectAttempt, type ConnectWaiter } from "../connections/connect-attempt.ts";
import { describe } from "../connections/connection.ts";
import type { KnownName, LocateFailure, ResolvedAddress, Resolver } from "../resolve/resolver.ts";
import type { Address, HostAddress } from "../settings/pool-target.ts";

const NO_ROOM = "the limit of open files leaves no room for another connection";

/** Connects to one address: the attempt succeeds or `failed` is called. Returns a function that cancels it. */
type Dial<Connected> = (
  address: ResolvedAddress,
  attempt: ConnectAttempt<Connected>,
  failed: (error: Error | undefined) => void,
) => () => void;

/**
 * Looks up the addresses of a target, or of the proxies on the way to it, and tries them one after the other until one connects.
 * Each address gets an equal share of the remaining time, so that one dead address does not use up the whole connect timeout.
 * Addresses are not raced as in RFC 8305 (happy eyeballs): backends would see connections without requests.
 */
export class AddressSearch {
  readonly #addresses: readonly Address[];
  readonly #resolver: Resolver;
  readonly #connectTimeout: number;
  readonly #budget: SocketBudget;
  readonly #prefersIpv4: boolean;
  /** Counts searches: each begins with the next address. */
  #rotation = 0;

  /** `connectTimeout`: milliseconds over all addresses. `budget`: by default, without a limit. */
  constructor(
    addresses: readonly Address[],
    resolver: Resolver,
    connectTimeout: number,
    budget: SocketBudget = new SocketBudget(),
  ) {
    this.#addresses = addresses;
    this.#resolver = resolver;
    this.#connectTimeout = connectTimeout;
    this.#budget = budget;
    const [first] = addresses;
    this.#prefersIpv4 = resolver.prefersIpv4(first !== undefined && "host" in first ? first.dns?.family : undefined);
  }

  /** The latest lookup of the first host name among the addresses; undefined without a host name in use. */
  get knownName(): KnownName | undefined {
    for (const address of this.#addresses)
      if ("host" in address && isIP(address.host) === 0) return this.#known(address);
    return undefined;
  }

  #known({ host, dns, at, srv }: HostAddress): KnownName | undefined {
    const { services } = this.#resolver;
    const known = srv === undefined ? this.#resolver.known(host, dns?.family) : services.known(srv, dns?.family);
    return known && at !== undefined ? { ...known, addresses: at } : known;
  }

  /** `ended` is called before the waiter, and also after a cancellation. Returns a function that cancels the search. */
  start<Connected>(waiter: ConnectWaiter<Connected>, ended: () => void, dial: Dial<Connected>): () => void {
    let counted = false;
    const attempt = new ConnectAttempt(waiter, this.#connectTimeout, () => {
      if (counted) this.#budget.used.upstream--;
      ended();
    });
    const addresses: ResolvedAddress[] = [];
    let left = this.#addresses.length;
    let failure: LocateFailure | undefined;
    const located = (found: readonly ResolvedAddress[], error: LocateFailure | undefined): void => {
      addresses.push(...found);
      failure ??= error;
      if (--left > 0) return;
      attempt.clock.located(this.#addresses.some(isNamed));
      const ordered = this.#inOrder(addresses);
      queueMicrotask(() => {
        if (attempt.closed) return;
        // Not counted before: while a name is looked up, no file is open.
        counted = ordered.length > 0 && this.#budget.take("upstream");
        if (counted) tryAddresses(attempt, ordered, 0, dial);
        else if (ordered.length > 0) attempt.reject(NO_ROOM);
        else attempt.fail(failure?.code ?? "TG_DNS_FAILED", failure?.message ?? "no proxy is available");
      });
    };
    for (const address of this.#addresses) this.#resolver.locate(address, "tcp", located);
    if (this.#addresses.length === 0) queueMicrotask(() => located([], undefined));
    return () => attempt.cancel();
  }

  /**
   * Equally preferred addresses take turns at being the first, which balances the load of a name with several (round robin DNS).
   */
  #inOrder(addresses: readonly ResolvedAddress[]): readonly ResolvedAddress[] {
    const first = this.#rotation++ % Math.max(1, addresses.length);
    const rotated = [...addresses.slice(first), ...addresses.slice(0, first)];
    return this.#prefersIpv4 ? rotated.sort((a, b) => Number(isIpv6(a)) - Number(isIpv6(b))) : rotated;
  }
}

function isIpv6({ address }: ResolvedAddress): boolean {
  return "host" in address.options && isIP(address.options.host) === 6;
}

function isNamed(address: Address): boolean {
  return "host" in address && address.at === undefined && isIP(address.host) === 0;
}

/** Tries the addresses from `index` on. */
function tryAddresses<Connected>(
  attempt: ConnectAttempt<Connected>,
  addresses: readonly ResolvedAddress[],
  index: number,
  dial: Dial<Connected>,
): void {
  const address = addresses[index];
  if (attempt.closed || address === undefined) return;
  const cancel = dial(address, attempt, (error) => {
    if (index + 1 < addresses.length) tryAddresses(attempt, addresses, index + 1, dial);
    else if (error instanceof AddressRefused) attempt.fail(error.code, error.message);
    else attempt.fail("TG_UPSTREAM_FAILED", error === undefined ? "connection closed" : describe(error));
  });
  attempt.trying(cancel, addresses.length - index);
}
