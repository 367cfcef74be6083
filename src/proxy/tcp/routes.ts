import type { CompiledBackend } from "../compiled.ts";
import { HostIndex } from "../match/hosts.ts";

export interface CompiledTcpRoute {
  /** `<namespace>/<name>` */
  readonly label: string;
  readonly hostnames: readonly string[];
  readonly backends: readonly CompiledBackend[];
  readonly totalWeight: number;
}

/** The TCP routes of a listener by the name of the TLS handshake (reference 3.33); of equal hostnames the first counts. */
export class TcpRouteTable {
  readonly #index = new HostIndex<CompiledTcpRoute>();

  constructor(routes: readonly CompiledTcpRoute[]) {
    for (const route of routes) {
      const hostnames = route.hostnames.length > 0 ? route.hostnames : [""];
      for (const hostname of hostnames) this.#index.getOrAdd(hostname, () => route);
    }
  }

  /** `serverName` is lower-case; `` (no TLS, or no name asked for) fits routes without hostnames only. */
  find(serverName: string): CompiledTcpRoute | undefined {
    return this.#index.find(serverName, undefined, (route) => route);
  }
}
