import { HostIndex } from "./hosts.ts";

/** The listeners of a bind by hostname (reference 2.1): exact, then the longest wildcard, then any. */
export class ListenerTable<L> {
  /** In the order of the configuration. */
  readonly entries: readonly { readonly hostname: string; readonly value: L }[];
  readonly #index = new HostIndex<{ readonly value: L }>();

  /** Hostnames are lower-case; `` and `*` stand for any host. Of two entries with one hostname the first counts. */
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
