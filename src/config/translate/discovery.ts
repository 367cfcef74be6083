import { adviseOnLocality } from "../../translation/advice.ts";
import { noPort, reportDuplicates, reportUnknown } from "../../translation/references.ts";
import { type Service, ServiceIndex, type Workload } from "../../upstream/discovery/discovery.ts";
import { withLocalityOfNode } from "../../upstream/discovery/locality.ts";
import type { ConfigFile } from "../schema/config.ts";
import type { Context } from "./context.ts";

/** `services` and `workloads`, with what is wrong between them reported. */
export function translateDiscovery(
  { services, workloads }: Pick<ConfigFile, "services" | "workloads">,
  context: Context,
): { readonly services: readonly Service[]; readonly workloads: readonly Workload[] } {
  const named = services.map((each, i) => ({ key: keyOf(each), name: keyOf(each), origin: { path: ["services", i] } }));
  reportDuplicates("service", named, context.report, "hostname");
  const owned = workloads.map(({ uid }, i) => ({ key: uid, name: uid, origin: { path: ["workloads", i] } }));
  reportDuplicates("workload", owned, context.report, "uid");
  for (const [i, workload] of workloads.entries())
    for (const [service, ports] of Object.entries(workload.services)) {
      const path = ["workloads", i, "services"];
      const known = context.services.get(service);
      if (known === undefined) {
        reportUnknown("service", "services", service, context.services.keys(), path, context, service);
        continue;
      }
      for (const port of Object.keys(ports))
        if (!Object.hasOwn(known, port)) context.report([...path, service], noPort(service, port, known), port);
    }
  const discovered = { services: services.map(plain) as Service[], workloads: workloads.map(plain) as Workload[] };
  const own = withLocalityOfNode(context.locality, discovered.workloads);
  const index = new ServiceIndex(discovered.services, discovered.workloads);
  for (const [i, service] of discovered.services.entries()) {
    const { workloads: behind = [] } = index.find(keyOf(service)) ?? {};
    adviseOnLocality(service, behind, own, ["services", i, "loadBalancer"], context.report);
  }
  return discovered;
}

export function keyOf({ namespace, hostname }: Pick<Service, "namespace" | "hostname">): string {
  return `${namespace}/${hostname}`;
}

/** Plain data without undefined fields. */
function plain(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
