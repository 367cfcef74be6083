import type { Path } from "../../base/paths.ts";
import { defined } from "../../policies/contract/resolver.ts";
import { reportDuplicates } from "../../translation/references.ts";
import { type TargetInput, translateHost, translateTarget } from "../../translation/target.ts";
import type { Workload } from "../../upstream/discovery/discovery.ts";
import { targetName } from "../../upstream/settings/pool-target.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { PoolEndpointInput, PoolLoadBalancerInput } from "../schema/pools.ts";
import type { Context } from "./context.ts";

/** A backend that may be a pool. */
export interface PoolOrTarget extends TargetInput {
  readonly name?: string | undefined;
  readonly endpoints?: readonly PoolEndpointInput[] | undefined;
  readonly loadBalancer?: PoolLoadBalancerInput | undefined;
}

/** The target of the backend with this key. If it is a pool, its endpoints are added to those of the configuration. */
export function translateBackendTarget(input: PoolOrTarget, key: string, path: Path, context: Context): Target {
  const { endpoints, loadBalancer } = input;
  if (endpoints === undefined) {
    if (loadBalancer !== undefined)
      context.report([...path, "loadBalancer"], {
        message: "is for a pool; list its servers as endpoints, or leave it out",
      });
    return translateTarget(input, path, context);
  }
  const hostname = key.slice(1);
  const at = (index: number): Path => [...path, "endpoints", index];
  const translated = endpoints.map((endpoint, i) => translateEndpoint(endpoint, key, at(i), context));
  const named = translated.flatMap((each, i) =>
    each ? [{ key: each.uid, name: each.name, origin: { path: at(i) } }] : [],
  );
  reportDuplicates("endpoint", named, context.report, "host");
  context.pools.push({
    service: {
      name: input.name ?? hostname,
      namespace: "",
      hostname,
      vips: [],
      ports: {},
      ...(loadBalancer && {
        loadBalancer: {
          routingPreferences: [],
          mode: "Standard",
          healthPolicy: "OnlyHealthy",
          ...defined(loadBalancer),
        },
      }),
    },
    workloads: translated.filter((each) => each !== undefined),
  });
  return { type: "pool", key };
}

/** undefined: the address is invalid, and has been reported. */
function translateEndpoint(
  { host, weight, backup }: PoolEndpointInput,
  pool: string,
  path: Path,
  context: Context,
): Workload | undefined {
  const target = translateHost(host, path, context);
  if (target === undefined) return undefined;
  const { type: _, ...address } = target;
  const name = targetName(address);
  return {
    uid: `${pool} ${name}`,
    name,
    namespace: "",
    workloadIps: [],
    status: "healthy",
    capacity: weight,
    ...(backup && { backup: true }),
    services: { [pool]: {} },
    address,
  };
}
