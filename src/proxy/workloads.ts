import { isIPv6, SocketAddress } from "node:net";
import type { Discovered } from "../http/source.ts";
import type { Workload } from "../upstream/discovery.ts";

/** The workloads of the configuration in force, by their addresses. */
export class Workloads implements Discovered {
  #byAddress: ReadonlyMap<string, Workload> = new Map();

  replace(workloads: readonly Workload[]): void {
    this.#byAddress = new Map(
      workloads.flatMap((workload) => workload.workloadIps.map((address) => [canonical(address), workload] as const)),
    );
  }

  /** The last one with this address; undefined when there is none. */
  find(address: string): Workload | undefined {
    return this.#byAddress.size === 0 ? undefined : this.#byAddress.get(canonical(address));
  }
}

/** An IPv6 address has one form as sockets show it, and many as people write it. */
function canonical(address: string): string {
  return isIPv6(address) ? new SocketAddress({ address, family: "ipv6" }).address : address;
}
