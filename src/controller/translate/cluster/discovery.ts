/**
 * Services of Kubernetes and the endpoints behind them, as the data plane knows services and workloads. Routes refer to a service
 * by its key, so a pod that comes or goes changes what is here and no route.
 */
import { nameOfKey } from "../../../base/object-key.ts";
import type { EndpointSlice, Service as KubeService, ServiceImport, ServicePort } from "../../../kube/objects.ts";
import type { LoadBalancer, Preference, Service, Workload } from "../../../upstream/discovery/discovery.ts";
import { defineIndex, defineQuery, type Read } from "../../graph/graph.ts";

/** A service with what serves it. */
interface ServiceAddresses {
  readonly service: Service;
  readonly workloads: readonly Workload[];
}

/** Domain of the cluster's DNS, which is part of the names of services. */
const CLUSTER_DOMAIN = "svc.cluster.local";

/** The same of ServiceImports, in which each Service of that name and namespace in a set of clusters takes part. */
const CLUSTERSET_DOMAIN = "svc.clusterset.local";

/** Of workloads, where dumps show it. */
export const CLUSTER_ID = "Kubernetes";

/** The uid of a pod as a workload. */
export function uidOfPod(namespace: string, name: string): string {
  return `${CLUSTER_ID}//Pod/${namespace}/${name}`;
}

/** The key by which targets refer to a Service: `<namespace>/<name>.<namespace>.svc.cluster.local`. */
export function keyOfService(namespace: string, name: string): string {
  return `${namespace}/${name}.${namespace}.${CLUSTER_DOMAIN}`;
}

/** The key by which targets refer to a ServiceImport. */
export function keyOfImport(namespace: string, name: string): string {
  return `${namespace}/${name}.${namespace}.${CLUSTERSET_DOMAIN}`;
}

/**
 * The key of the UDP ports of a Service some of whose port numbers are TCP ports too: a service of the data plane has one target
 * port for each number. Names of Services have no dots, so this is the key of no other one.
 */
export function keyOfUdpPorts(namespace: string, name: string): string {
  return keyOfService(namespace, `${UDP}${name}`);
}

const UDP = "udp.";

/** EndpointSlices by `<namespace>/<service>`. */
const SLICES = defineIndex("EndpointSlice", ({ metadata: { namespace, labels } }) => {
  const service = labels?.["kubernetes.io/service-name"];
  return service === undefined ? [] : [`${namespace}/${service}`];
});

/** EndpointSlices by `<namespace>/<name>` of their ServiceImport. */
const IMPORTED_SLICES = defineIndex("EndpointSlice", ({ metadata: { namespace, labels } }) => {
  const service = labels?.["multicluster.kubernetes.io/service-name"];
  return service === undefined ? [] : [`${namespace}/${service}`];
});

/**
 * The service and workloads of a service key; undefined if there is no such Service. A port of a service has one target port for
 * each slice, so named target ports may differ between pods.
 */
export const serviceAddresses = defineQuery<ServiceAddresses | undefined>("serviceAddresses", (read, key) => {
  const { namespace, name: hostname } = nameOfKey(key);
  if (hostname.endsWith(`.${CLUSTERSET_DOMAIN}`)) return importedAddresses(read, key);
  const label = hostname.slice(0, -`.${namespace}.${CLUSTER_DOMAIN}`.length);
  const name = label.startsWith(UDP) ? label.slice(UDP.length) : label;
  const service = read.get("Service", `${namespace}/${name}`);
  if (service === undefined || key !== keyOfService(namespace, label)) return undefined;
  const slices = read.find(SLICES, `${namespace}/${name}`).filter((slice) => isUsable(slice, service));
  const ports = portsOf(service, label !== name);
  return {
    service: translateService(service, hostname, ports, slices),
    workloads: workloadsOf(read, key, service, ports, slices),
  };
});

function importedAddresses(read: Read, key: string): ServiceAddresses | undefined {
  const { namespace, name: hostname } = nameOfKey(key);
  const name = hostname.slice(0, -`.${namespace}.${CLUSTERSET_DOMAIN}`.length);
  const imported = read.get("ServiceImport", `${namespace}/${name}`);
  if (imported === undefined) return undefined;
  const service = serviceOfImport(imported);
  const slices = read.find(IMPORTED_SLICES, `${namespace}/${name}`).map(withoutPods);
  const ports = portsOf(service, false);
  return {
    service: translateService(service, hostname, ports, slices),
    workloads: workloadsOf(read, key, service, ports, slices),
  };
}

/** A ServiceImport as a Service, whose fields it has. */
export function serviceOfImport({
  apiVersion,
  metadata,
  spec: { ports = [], ips = [] } = {},
}: ServiceImport): KubeService {
  return { apiVersion, kind: "Service", metadata, spec: { ports, clusterIPs: ips } };
}

/** Pods and nodes of other clusters may have the names of those of this one. */
function withoutPods({ endpoints, ...slice }: EndpointSlice): EndpointSlice {
  return {
    ...slice,
    // The API server sends null for an empty list.
    endpoints: (endpoints ?? []).map(({ targetRef: _pod, nodeName: _node, ...endpoint }) => endpoint),
  };
}

/**
 * The workloads of several services by uid: a pod that serves two of them is one workload of both. Workloads of a single service
 * stay the same objects.
 */
export function mergeWorkloads(services: Iterable<readonly Workload[]>): ReadonlyMap<string, Workload> {
  const merged = new Map<string, Workload>();
  for (const workloads of services)
    for (const workload of workloads) {
      const known = merged.get(workload.uid);
      merged.set(workload.uid, known === undefined ? workload : mergeTwo(known, workload));
    }
  return merged;
}

function mergeTwo(a: Workload, b: Workload): Workload {
  return {
    ...a,
    workloadIps: [...new Set([...a.workloadIps, ...b.workloadIps])],
    services: { ...a.services, ...b.services },
  };
}

/** Of a Service with two families of addresses, endpoints of its first one are used: they are the same pods. */
function isUsable({ addressType }: EndpointSlice, { spec }: KubeService): boolean {
  const family = spec.ipFamilies?.[0];
  return addressType === "FQDN" || family === undefined || spec.ipFamilies?.length === 1 || addressType === family;
}

/** One port for each number: that of TCP, unless only those of UDP are wanted. */
function portsOf({ spec }: KubeService, udpOnly: boolean): readonly ServicePort[] {
  const isUdp = ({ protocol }: ServicePort): boolean => protocol === "UDP";
  const all = spec.ports ?? [];
  const candidates = udpOnly ? all.filter(isUdp) : [...all.filter((port) => !isUdp(port)), ...all.filter(isUdp)];
  return candidates.filter((port, i) => candidates.findIndex((each) => each.port === port.port) === i);
}

function translateService(
  { metadata, spec }: KubeService,
  hostname: string,
  servicePorts: readonly ServicePort[],
  slices: readonly EndpointSlice[],
): Service {
  const ports: Record<string, number> = {};
  const appProtocols: Record<string, string> = {};
  for (const port of servicePorts) {
    ports[port.port] = targetPort(port, slices);
    if (port.appProtocol !== undefined) appProtocols[port.port] = port.appProtocol;
  }
  const vips = (spec.clusterIPs ?? [spec.clusterIP ?? ""]).filter((ip) => ip !== "" && ip !== "None");
  const loadBalancer = LOAD_BALANCERS[spec.trafficDistribution ?? ""];
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    hostname,
    // As dumps show them: `<network>/<address>`; a cluster has one network, which has no name.
    vips: vips.map((ip) => `/${ip}`),
    ports,
    ...(Object.keys(appProtocols).length > 0 && { appProtocols }),
    ...(loadBalancer !== undefined && { loadBalancer }),
  };
}

function targetPort(port: ServicePort, slices: readonly EndpointSlice[]): number {
  if (typeof port.targetPort === "number") return port.targetPort;
  for (const slice of slices) {
    const found = portOf(slice, port);
    if (found !== undefined) return found;
  }
  return port.port;
}

/** The port on which endpoints of a slice serve a port of the Service. */
function portOf({ ports }: EndpointSlice, port: ServicePort): number | undefined {
  // A Service with a single port need not name it; slices then have the empty name (EndpointPort).
  return ports?.find(
    (each) => (each.name ?? "") === (port.name ?? "") && (each.protocol ?? "TCP") === (port.protocol ?? "TCP"),
  )?.port;
}

/** `spec.trafficDistribution` of Services: near endpoints first, others as a fallback. */
const LOAD_BALANCERS: Readonly<Record<string, LoadBalancer>> = {
  PreferClose: preferring("zone"),
  PreferSameZone: preferring("zone"),
  PreferSameNode: preferring("node"),
};

function preferring(...routingPreferences: readonly Preference[]): LoadBalancer {
  return { routingPreferences, mode: "Failover", healthPolicy: "OnlyHealthy" };
}

type KubeEndpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/**
 * Ready endpoints; without any, those that still serve while they terminate, as in kube-proxy, so that a rollout of a
 * single replica loses no requests; without any of these, those that are cut off.
 */
function workloadsOf(
  read: Read,
  key: string,
  { metadata }: KubeService,
  servicePorts: readonly ServicePort[],
  slices: readonly EndpointSlice[],
): readonly Workload[] {
  const all = slices.flatMap((slice) => (slice.endpoints ?? []).map((endpoint) => ({ slice, endpoint })));
  // Absent conditions mean yes (EndpointConditions).
  const tiers: readonly ((endpoint: KubeEndpoint) => boolean)[] = [
    ({ conditions }) => conditions?.ready ?? true,
    ({ conditions }) => (conditions?.serving ?? false) && conditions?.terminating === true,
    ({ conditions, targetRef }) =>
      conditions?.terminating !== true &&
      targetRef?.kind === "Pod" &&
      read.query(isCutOff, `${targetRef.namespace ?? metadata.namespace}/${targetRef.name}`),
  ];
  let used: typeof all = [];
  for (const isIn of tiers) {
    used = all.filter(({ endpoint }) => isIn(endpoint));
    if (used.length > 0) break;
  }
  const workloads = used.map(({ slice, endpoint }) => {
    const ports: Record<string, number> = {};
    for (const port of servicePorts) {
      const target = portOf(slice, port);
      if (target !== undefined) ports[port.port] = target;
    }
    return translateEndpoint(read, metadata.namespace, slice, endpoint, { [key]: ports });
  });
  return [...mergeWorkloads([workloads]).values()];
}

function translateEndpoint(
  read: Read,
  namespace: string,
  slice: EndpointSlice,
  { addresses, targetRef, nodeName, zone }: KubeEndpoint,
  services: Workload["services"],
): Workload {
  const address = addresses[0] ?? "";
  const isPod = targetRef?.kind === "Pod" && targetRef.name !== undefined;
  const name = isPod ? (targetRef.name ?? "") : address;
  const owner = isPod ? (targetRef.namespace ?? namespace) : namespace;
  const pod = isPod ? read.query(podFacts, `${owner}/${name}`) : NO_POD;
  const node = nodeName ?? pod.node;
  const locality = { ...(node !== undefined && read.query(nodeLocality, node)), ...(zone !== undefined && { zone }) };
  return {
    uid: isPod ? uidOfPod(owner, name) : `${CLUSTER_ID}//EndpointSlice/${slice.metadata.name}/${owner}/${name}`,
    name,
    namespace: owner,
    // Consumers use the first address only; further ones are deprecated (Endpoint.addresses).
    workloadIps: slice.addressType === "FQDN" ? [] : [address],
    ...(slice.addressType === "FQDN" && { hostname: address }),
    ...(node !== undefined && { node }),
    clusterId: CLUSTER_ID,
    status: "healthy",
    capacity: 1,
    ...(Object.keys(locality).length > 0 && { locality }),
    services,
    ...(pod.serviceAccount !== undefined && { serviceAccount: pod.serviceAccount }),
  };
}

/**
 * Whether the containers of a pod are ready, whose endpoint is not: the cluster has not heard of its node for a while. After an
 * outage of the API server that holds for all nodes at once, until they report again, while the pods serve as before. A pod that is
 * ready counts too: its endpoint follows seconds later, as other components write it. Key: `<namespace>/<name>`.
 */
const isCutOff = defineQuery<boolean>("isCutOff", (read, key) => {
  const conditions = read.get("Pod", key)?.status?.conditions ?? [];
  return conditions.some(({ type, status }) => (type === "Ready" || type === "ContainersReady") && status === "True");
});

interface PodFacts {
  readonly node?: string;
  readonly serviceAccount?: string;
}
const NO_POD: PodFacts = {};

/** What workloads show of a pod. A separate query: pods change often, and these facts never do. */
export const podFacts = defineQuery<PodFacts>("podFacts", (read, key) => {
  const { nodeName, serviceAccountName } = read.get("Pod", key)?.spec ?? {};
  return {
    ...(nodeName !== undefined && { node: nodeName }),
    ...(serviceAccountName !== undefined && { serviceAccount: serviceAccountName }),
  };
});

/** Region and zone of a node, by its well-known labels. A separate query: nodes report their state all the time. */
export const nodeLocality = defineQuery<NonNullable<Workload["locality"]>>("nodeLocality", (read, name) => {
  const labels = read.get("Node", name)?.metadata.labels;
  const region = labels?.["topology.kubernetes.io/region"];
  const zone = labels?.["topology.kubernetes.io/zone"];
  return { ...(region !== undefined && { region }), ...(zone !== undefined && { zone }) };
});
