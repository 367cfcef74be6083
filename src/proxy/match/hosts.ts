/**
 * Values by hostname: exact names, wildcards (`*.example.com`, which means one or more labels before the suffix) and
 * one for any host (`` or `*`). A look-up costs one map access, plus one for each label when there are wildcards.
 */
export class HostIndex<V> {
  readonly #exact = new Map<string, V>();
  /** By suffix: `example.com` for `*.example.com`. */
  readonly #wildcards = new Map<string, V>();
  #any: V | undefined;
  /** Length of the longest wildcard suffix: longer ends of a host are not looked up, so a host of many dots costs little. */
  #longest = 0;

  /** The value of exactly this hostname, made by `create` if it is new. `hostname` is lower-case. */
  getOrAdd(hostname: string, create: () => V): V {
    if (hostname === "" || hostname === "*") {
      this.#any ??= create();
      return this.#any;
    }
    const wildcard = hostname.startsWith("*.");
    const map = wildcard ? this.#wildcards : this.#exact;
    const name = wildcard ? hostname.slice(2) : hostname;
    let value = map.get(name);
    if (value === undefined) {
      value = create();
      map.set(name, value);
      if (wildcard) this.#longest = Math.max(this.#longest, name.length);
    }
    return value;
  }

  /**
   * The first result of `accept` that is not undefined, over the values whose hostname fits `host` (lower-case, without port),
   * the most specific first: exact, wildcards from the longest suffix, any (docs/lifecycle.md#4-match-route). `argument` is
   * passed on so that `accept` needs no closure.
   */
  find<A, T>(host: string, argument: A, accept: (value: V, argument: A) => T | undefined): T | undefined {
    const exact = this.#exact.get(host);
    if (exact !== undefined) {
      const found = accept(exact, argument);
      if (found !== undefined) return found;
    }
    if (this.#longest > 0) {
      // From 1: a wildcard needs at least one character before the dot.
      let dot = host.indexOf(".", Math.max(1, host.length - this.#longest - 1));
      for (; dot !== -1; dot = host.indexOf(".", dot + 1)) {
        const wildcard = this.#wildcards.get(host.slice(dot + 1));
        if (wildcard === undefined) continue;
        const found = accept(wildcard, argument);
        if (found !== undefined) return found;
      }
    }
    return this.#any === undefined ? undefined : accept(this.#any, argument);
  }

  /** Every value whose hostname fits `host`, the most specific first. */
  all(host: string): V[] {
    const found: V[] = [];
    this.find(host, found, (value, list) => {
      list.push(value);
      return undefined;
    });
    return found;
  }

  /** The values of all hostnames. */
  *values(): Generator<V> {
    yield* this.#exact.values();
    yield* this.#wildcards.values();
    if (this.#any !== undefined) yield this.#any;
  }
}

/** The listeners of a bind by hostname (docs/lifecycle.md#2-select-listener): exact, then the longest wildcard, then any. */
export class ListenerTable<L> {
  /** In the order of the configuration. */
  readonly entries: readonly { readonly hostname: string; readonly value: L }[];
  readonly #index = new HostIndex<{ readonly value: L }>();

  /** Hostnames are lower-case; `` and `*` match any host. If two entries have the same hostname, the first counts. */
  constructor(entries: readonly { readonly hostname: string; readonly value: L }[]) {
    this.entries = entries;
    for (const entry of entries) this.#index.getOrAdd(entry.hostname, () => entry);
  }

  /** `host` is lower-case and without port. */
  find(host: string): L | undefined {
    return this.#index.find(host, undefined, theValue);
  }
}

function theValue<L>(entry: { readonly value: L }): L {
  return entry.value;
}

/**
 * The TCP routes of a listener by the name of the TLS handshake (docs/configuration.md#tcproute); of equal hostnames the first
 * counts.
 */
export class TcpRouteTable<R extends { readonly hostnames: readonly string[] }> {
  /** All of them, in the order of the configuration. */
  readonly routes: readonly R[];
  readonly #index = new HostIndex<{ readonly route: R }>();

  constructor(routes: readonly R[]) {
    this.routes = routes;
    for (const route of routes) {
      const hostnames = route.hostnames.length > 0 ? route.hostnames : [""];
      for (const hostname of hostnames) this.#index.getOrAdd(hostname, () => ({ route }));
    }
  }

  /** `serverName` is lower-case; `` (no TLS, or no name requested) fits only routes without hostnames. */
  find(serverName: string): R | undefined {
    return this.#index.find(serverName, undefined, ({ route }) => route);
  }
}
