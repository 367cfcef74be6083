import type { Preference, Service, Workload } from "../ir/ir.ts";

/** Where this gateway or a workload runs; what is not known is undefined. */
export type Place = { readonly [Each in Preference]?: string | undefined };

/**
 * Of this process: `LOCALITY` (`region/zone/subzone`), `NODE_NAME`, `CLUSTER_ID` and `NETWORK`; where the environment does not
 * tell, what is `configured` counts.
 */
export function ownPlace(
  env: Readonly<Record<string, string | undefined>>,
  configured: Pick<Place, "cluster" | "network"> = {},
): Place {
  const [region, zone, subzone] = (env.LOCALITY ?? "").split("/");
  const cluster = env.CLUSTER_ID || configured.cluster;
  const network = env.NETWORK || configured.network;
  return known({ region, zone, subzone, node: env.NODE_NAME, cluster, network });
}

/** Unless it is told, the cluster is the first part of the uid: `<cluster>//Pod/<namespace>/<name>`. */
function placeOf({ locality, node, network, clusterId, uid }: Workload): Place {
  const cluster = clusterId ?? (uid.includes("//") ? uid.slice(0, uid.indexOf("//")) : undefined);
  return known({ ...locality, node, network, cluster });
}

function known(place: Place): Place {
  return Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined && value !== ""));
}

/**
 * The workloads of a service that may get requests, in buckets of which the first with active endpoints is used (reference
 * 3.28). `Failover`: those that agree with the own place in most of the preferences, counted up to the first in which they
 * differ, come first. `Strict`: only those that agree in all. `Standard` and `Passthrough`: all in one bucket.
 */
export function localityBuckets(
  { loadBalancer }: Pick<Service, "loadBalancer">,
  workloads: readonly Workload[],
  own: Place,
): readonly (readonly Workload[])[] {
  const usable =
    loadBalancer?.healthPolicy === "AllowAll" ? workloads : workloads.filter(({ status }) => status === "healthy");
  if (loadBalancer?.mode !== "Strict" && loadBalancer?.mode !== "Failover") return [usable];
  const { mode, routingPreferences } = loadBalancer;
  const all = routingPreferences.length;
  const buckets = Array.from({ length: all + 1 }, (): Workload[] => []);
  for (const workload of usable) buckets[all - agreement(placeOf(workload), own, routingPreferences)]?.push(workload);
  return mode === "Strict" ? buckets.slice(0, 1) : buckets.filter((bucket) => bucket.length > 0);
}

/** What is not known agrees with nothing. */
function agreement(place: Place, own: Place, preferences: readonly Preference[]): number {
  const differs = preferences.findIndex((each) => own[each] === undefined || own[each] !== place[each]);
  return differs < 0 ? preferences.length : differs;
}
