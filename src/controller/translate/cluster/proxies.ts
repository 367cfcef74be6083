/**
 * The proxies of a Gateway as workloads: a pod cannot look up the region and zone of its node, so each finds itself, or another
 * proxy of the same node, among the workloads that it is sent.
 */
import { nameOfKey } from "../../../base/object-key.ts";
import { keyOfObject } from "../../../kube/keys.ts";
import type { Workload } from "../../../upstream/discovery/discovery.ts";
import { type Address, nameOfAddress } from "../../../xds/resources.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { fleetsOf, podsOf } from "../model/fleets.ts";
import { CLUSTER_ID, nodeLocality, podFacts, uidOfPod } from "./discovery.ts";

/** Those of a Gateway by name. Pods that run nowhere yet, or on nodes without labels of a region and zone, are left out. */
export function proxiesOf(read: Read, gateway: string): ReadonlyMap<string, Address> {
  const pods = read.query(podsOfGateway, gateway);
  const proxies = pods.map((pod) => read.query(proxyAddress, pod)).filter((address) => address !== undefined);
  return new Map(proxies.map((address) => [nameOfAddress(address), address]));
}

/** A separate query: pods report their state all the time. */
const podsOfGateway = defineQuery<readonly string[]>("podsOfGateway", (read, gateway) =>
  read.query(fleetsOf, gateway).flatMap((fleet) => podsOf(read, fleet).map(keyOfObject)),
);

/** Key: `<namespace>/<name>` of a pod. It serves nothing, so it has no address. */
const proxyAddress = defineQuery<Address | undefined>("proxyAddress", (read, key) => {
  const { node, serviceAccount } = read.query(podFacts, key);
  const locality = node === undefined ? {} : read.query(nodeLocality, node);
  if (node === undefined || Object.keys(locality).length === 0) return undefined;
  const { namespace, name } = nameOfKey(key);
  const workload: Workload = {
    uid: uidOfPod(namespace, name),
    name,
    namespace,
    workloadIps: [],
    node,
    clusterId: CLUSTER_ID,
    status: "healthy",
    capacity: 1,
    locality,
    services: {},
    ...(serviceAccount !== undefined && { serviceAccount }),
  };
  return { kind: "workload", workload };
});
