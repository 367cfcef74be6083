import { HostIndex } from "../match/hosts.ts";

/** The TCP routes of a listener by the name of the TLS handshake (reference 3.33); of equal hostnames the first counts. */
export class TcpRouteTable<R extends { readonly hostnames: readonly string[] }> {
  readonly #index = new HostIndex<{ readonly route: R }>();

  constructor(routes: readonly R[]) {
    for (const route of routes) {
      const hostnames = route.hostnames.length > 0 ? route.hostnames : [""];
      for (const hostname of hostnames) this.#index.getOrAdd(hostname, () => ({ route }));
    }
  }

  /** `serverName` is lower-case; `` (no TLS, or no name asked for) fits routes without hostnames only. */
  find(serverName: string): R | undefined {
    return this.#index.find(serverName, undefined, ({ route }) => route);
  }
}
