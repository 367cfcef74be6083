import type { Preference, Service, Workload } from "./discovery.ts";

/** The parts of a place, the largest first. */
export const LEVELS = ["region", "zone", "subzone"] as const satisfies readonly Preference[];

/** Where this gateway or a workload runs; unknown parts are undefined. */
export type Locality = { readonly [Each in Preference]?: string | undefined };

/**
 * The locality of this process: `LOCALITY` (`region/zone/subzone`), `NODE_NAME`, `CLUSTER_ID` and `NETWORK`; `configured` applies
 * where a variable is not set.
 */
export function ownLocality(
  env: Readonly<Record<string, string | undefined>>,
  configured: Omit<Locality, "node"> = {},
): Locality {
  const [region, zone, subzone] = env.LOCALITY
    ? env.LOCALITY.split("/")
    : [configured.region, configured.zone, configured.subzone];
  const cluster = env.CLUSTER_ID || configured.cluster;
  const network = env.NETWORK || configured.network;
  return known({ region, zone, subzone, node: env.NODE_NAME, cluster, network });
}

/**
 * `own` with the region and zone of its node, taken from a workload on the same node, unless they are set. A pod cannot look up the
 * labels of its node; a controller can, and sends the pods of the gateway as workloads.
 */
export function withLocalityOfNode(own: Locality, workloads: readonly Workload[]): Locality {
  const { node, region, zone, cluster } = own;
  if (node === undefined || region !== undefined || zone !== undefined) return own;
  const neighbour = workloads.find((each) => {
    if (each.node !== node || each.locality === undefined) return false;
    // Nodes of different clusters may have the same name.
    return cluster === undefined || localityOf(each).cluster === cluster;
  });
  return neighbour === undefined ? own : { ...known(neighbour.locality ?? {}), ...own };
}

/** By default the cluster is the first part of the uid: `<cluster>//Pod/<namespace>/<name>`. */
function localityOf({ locality, node, network, clusterId, uid }: Workload): Locality {
  const cluster = clusterId ?? (uid.includes("//") ? uid.slice(0, uid.indexOf("//")) : undefined);
  return known({ ...locality, node, network, cluster });
}

function known(locality: Locality): Locality {
  return Object.fromEntries(Object.entries(locality).filter(([, value]) => value !== undefined && value !== ""));
}

/**
 * The workloads of a service that may get requests, in tiers of buckets (docs/configuration.md#serviceloadbalancer). `Failover`: workloads
 * that match `own` in more preferences, counted up to the first difference, come first. `Strict`: only those that match in all.
 * `Standard` and `Passthrough`: all in one bucket. Backups are a tier of their own.
 */
export function localityTiers(
  { loadBalancer }: Pick<Service, "loadBalancer">,
  workloads: readonly Workload[],
  own: Locality,
): readonly (readonly (readonly Workload[])[])[] {
  const usable =
    loadBalancer?.healthPolicy === "AllowAll" ? workloads : workloads.filter(({ status }) => status === "healthy");
  const backups = usable.filter(({ backup }) => backup === true);
  if (backups.length === 0) return [byLocality(loadBalancer, usable, own)];
  const others = usable.filter(({ backup }) => backup !== true);
  return [byLocality(loadBalancer, others, own), byLocality(loadBalancer, backups, own)];
}

function byLocality(
  loadBalancer: Service["loadBalancer"],
  usable: readonly Workload[],
  own: Locality,
): readonly (readonly Workload[])[] {
  if (loadBalancer?.mode !== "Strict" && loadBalancer?.mode !== "Failover") return [usable];
  const { mode, routingPreferences } = loadBalancer;
  const all = routingPreferences.length;
  const buckets = Array.from({ length: all + 1 }, (): Workload[] => []);
  for (const workload of usable)
    buckets[all - agreement(localityOf(workload), own, routingPreferences)]?.push(workload);
  return mode === "Strict" ? buckets.slice(0, 1) : buckets.filter((bucket) => bucket.length > 0);
}

/** Whether a service prefers near workloads. */
export function prefersNear({ loadBalancer }: Pick<Service, "loadBalancer">): boolean {
  if (loadBalancer?.mode !== "Strict" && loadBalancer?.mode !== "Failover") return false;
  return loadBalancer.routingPreferences.length > 0;
}

/** Why a workload is behind others of its service, or gets no requests; `` for the nearest. */
export function whyBehind(service: Pick<Service, "loadBalancer">, workload: Workload, own: Locality): string {
  const { loadBalancer } = service;
  if (workload.status !== "healthy" && loadBalancer?.healthPolicy !== "AllowAll") return "its status is unhealthy";
  const apart = whyApart(service, workload, own);
  // With `Strict`, a backup elsewhere gets no requests either.
  return workload.backup === true && (apart === "" || loadBalancer?.mode !== "Strict") ? "a backup" : apart;
}

function whyApart(service: Pick<Service, "loadBalancer">, workload: Workload, own: Locality): string {
  const { routingPreferences = [] } = prefersNear(service) ? (service.loadBalancer ?? {}) : {};
  const theirs = localityOf(workload);
  const differing = routingPreferences[agreement(theirs, own, routingPreferences)];
  if (differing === undefined) return "";
  const [its, ours] = [theirs[differing] ?? "unknown", own[differing] ?? "unknown"];
  return `its ${differing} is ${its}, that of the gateway ${ours}`;
}

/** The number of preferences that match before the first difference. Unknown values match nothing. */
function agreement(locality: Locality, own: Locality, preferences: readonly Preference[]): number {
  const differs = preferences.findIndex((each) => own[each] === undefined || own[each] !== locality[each]);
  return differs < 0 ? preferences.length : differs;
}
