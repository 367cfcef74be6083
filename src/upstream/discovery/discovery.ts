/** Services and the workloads behind them, as service discovery knows them. */
import { isIPv6, SocketAddress } from "node:net";
import type { DnsSettings } from "./dns.ts";

/** A service-discovery object, or a pool, whose namespace is empty; key `<namespace>/<hostname>`. Field names as in the dump (reference 4.4). */
export interface Service {
  readonly name: string;
  readonly namespace: string;
  readonly hostname: string;
  readonly vips: readonly string[];
  /** service port → target port */
  readonly ports: Readonly<Record<string, number>>;
  readonly appProtocols?: Readonly<Record<string, string>>;
  readonly loadBalancer?: LoadBalancer;
}

/** Which workloads of a service are preferred (docs/configuration.md#serviceloadbalancer). */
export interface LoadBalancer {
  readonly routingPreferences: readonly Preference[];
  readonly mode: "Standard" | "Strict" | "Failover" | "Passthrough";
  /** `AllowAll`: also workloads whose status is not healthy. */
  readonly healthPolicy: "OnlyHealthy" | "AllowAll";
  /** How one of the preferred workloads is chosen. Default: `PowerOfTwoChoices`. */
  readonly algorithm?: "PowerOfTwoChoices" | "LeastRequests" | "RoundRobin" | undefined;
  /** Milliseconds in which the share of a new or recovered endpoint grows to its full size. Absent: it has that at once. */
  readonly slowStart?: number | undefined;
}

/** What a near workload has in common with the gateway. */
export type Preference = "region" | "zone" | "subzone" | "node" | "cluster" | "network";

export interface Workload {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly workloadIps: readonly string[];
  readonly hostname?: string;
  readonly network?: string;
  readonly node?: string;
  readonly clusterId?: string;
  readonly status: "healthy" | "unhealthy";
  readonly capacity: number;
  /** Gets requests only while no other workload of its services takes any. Absent: false. */
  readonly backup?: true;
  /** Of an endpoint of a pool: its only address, in place of `workloadIps`, `hostname` and ports. */
  readonly address?:
    | { readonly host: string; readonly port: number; readonly srv?: string; readonly dns?: DnsSettings }
    | { readonly path: string };
  readonly locality?: { readonly region?: string; readonly zone?: string; readonly subzone?: string };
  /** service key (`<namespace>/<hostname>`) → service port → workload port */
  readonly services: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** From here on for the dump only. */
  readonly serviceAccount?: string;
  readonly trustDomain?: string;
  readonly workloadName?: string;
  readonly workloadType?: string;
  readonly canonicalName?: string;
  readonly canonicalRevision?: string;
}

/** A service with the workloads behind it, in the order of the configuration. */
interface IndexedService {
  /** undefined: workloads refer to a service that is not defined. */
  readonly service: Service | undefined;
  readonly workloads: readonly Workload[];
}

/**
 * Services by key, each with its workloads; made once for a configuration. Every reference to a service looks it up here: a
 * scan of all workloads for each of them made the compilation quadratic.
 */
export class ServiceIndex {
  readonly #services = new Map<string, { service: Service | undefined; readonly workloads: Workload[] }>();

  constructor(services: readonly Service[] = [], workloads: readonly Workload[] = []) {
    for (const service of services) this.addService(service);
    for (const workload of workloads) this.addWorkload(workload);
  }

  /** The first of two definitions with the same key wins; duplicates are reported elsewhere. */
  addService(service: Service): void {
    this.#at(serviceKey(service)).service ??= service;
  }

  addWorkload(workload: Workload): void {
    for (const key of Object.keys(workload.services)) this.#at(key).workloads.push(workload);
  }

  /** `key`: `<namespace>/<hostname>`. undefined: unknown. */
  find(key: string): IndexedService | undefined {
    return this.#services.get(key);
  }

  /** Whether a service is the same here: the same objects, in the same order. */
  isSame(key: string, other: IndexedService | undefined): boolean {
    const own = this.#services.get(key);
    if (own === undefined || other === undefined) return own === other;
    if (own === other) return true;
    return (
      own.service === other.service &&
      own.workloads.length === other.workloads.length &&
      own.workloads.every((workload, i) => workload === other.workloads[i])
    );
  }

  #at(key: string): { service: Service | undefined; readonly workloads: Workload[] } {
    let indexed = this.#services.get(key);
    if (indexed === undefined) {
      indexed = { service: undefined, workloads: [] };
      this.#services.set(key, indexed);
    }
    return indexed;
  }
}

/** The key of a service, by which backends and workloads refer to it. */
export function serviceKey({ namespace, hostname }: Pick<Service, "namespace" | "hostname">): string {
  return `${namespace}/${hostname}`;
}

/** Whether a service is a pool, whose endpoints are written at a backend. Its key is that of the backend. */
export function isPool({ namespace }: Pick<Service, "namespace">): boolean {
  return namespace === "";
}

/** Workloads by their addresses. */
export class Workloads {
  #byAddress = new Map<string, Workload>();

  add(workload: Workload): void {
    for (const address of workload.workloadIps) this.#byAddress.set(canonical(address), workload);
  }

  /** Shares the workloads of `others` from now on, at no cost. */
  become(others: Workloads): void {
    this.#byAddress = others.#byAddress;
  }

  /** The last workload with this address, if any. */
  find(address: string): Workload | undefined {
    return this.#byAddress.size === 0 ? undefined : this.#byAddress.get(canonical(address));
  }
}

/** Sockets show an IPv6 address in one form; people write it in many. */
function canonical(address: string): string {
  return isIPv6(address) ? new SocketAddress({ address, family: "ipv6" }).address : address;
}
