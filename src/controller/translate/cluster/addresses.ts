/**
 * Services and workloads as the stream sends them. Each is a query, so one that has not changed stays the same object, also when
 * another endpoint of its service comes or goes.
 */
import type { Workload } from "../../../upstream/discovery/discovery.ts";
import { type Address, nameOfAddress } from "../../../xds/resources.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { mergeWorkloads, serviceAddresses } from "./discovery.ts";

/** The services with these keys and their workloads, by name. Services that do not exist are left out. */
export function addressesOf(read: Read, services: Iterable<string>): ReadonlyMap<string, Address> {
  const addresses = new Map<string, Address>();
  const servicesOf = new Map<string, string[]>();
  for (const key of services) {
    const service = read.query(serviceAddress, key);
    if (service === undefined) continue;
    addresses.set(nameOfAddress(service), service);
    for (const uid of read.query(workloadsByUid, key).keys()) {
      const known = servicesOf.get(uid);
      if (known === undefined) servicesOf.set(uid, [key]);
      else known.push(key);
    }
  }
  for (const [uid, keys] of servicesOf) {
    const workload = read.query(workloadAddress, [uid, ...keys.sort()]);
    if (workload !== undefined) addresses.set(nameOfAddress(workload), workload);
  }
  return addresses;
}

const serviceAddress = defineQuery<Address | undefined>("serviceAddress", (read, key) => {
  const service = read.query(serviceAddresses, key)?.service;
  return service && { kind: "service", service };
});

/** Whether endpoints in the region or zone of the caller are preferred. */
export function prefersNear(read: Read, service: string): boolean {
  const preferences = read.query(serviceAddresses, service)?.service.loadBalancer?.routingPreferences ?? [];
  return preferences.includes("region") || preferences.includes("zone");
}

const workloadsByUid = defineQuery<ReadonlyMap<string, Workload>>("workloadsByUid", (read, key) =>
  mergeWorkloads([read.query(serviceAddresses, key)?.workloads ?? []]),
);

/** Of a uid and the keys of the services that it serves. */
const workloadAddress = defineQuery<Address | undefined, readonly string[]>(
  "workloadAddress",
  (read, [uid = "", ...services]) => {
    const parts = services.map((service) => read.query(workloadsByUid, service).get(uid));
    const workload = mergeWorkloads([parts.filter((part) => part !== undefined)]).get(uid);
    return workload && { kind: "workload", workload };
  },
);
