import type { Path } from "../../base/paths.ts";
import { defined } from "../../policies/contract/resolver.ts";
import { parsingWith } from "../../policies/schema/cel.ts";
import { adviseOnLocality } from "../../translation/advice.ts";
import { knownFields } from "../../translation/problems/known-fields.ts";
import { reportIssues } from "../../translation/problems/schema-errors.ts";
import { reportDuplicates } from "../../translation/references.ts";
import {
  type HostTarget,
  isName,
  reportFirst,
  type TargetContext,
  type TargetInput,
  translateHost,
  translateTarget,
} from "../../translation/target.ts";
import { type Service, serviceKey, type Workload } from "../../upstream/discovery/discovery.ts";
import type { DnsSettings } from "../../upstream/discovery/dns.ts";
import { LEVELS } from "../../upstream/discovery/locality.ts";
import { targetName } from "../../upstream/settings/pool-target.ts";
import type { Target } from "../../upstream/settings/target.ts";
import { ConfigDocument } from "../parse/document.ts";
import {
  endpointList,
  type PoolEndpointInput,
  type PoolEndpointsInput,
  type PoolLoadBalancerInput,
} from "../schema/pools.ts";
import type { Context } from "./context.ts";

/** A backend that may be a pool. */
export interface PoolOrTarget extends TargetInput {
  readonly name?: string | undefined;
  readonly endpoints?: PoolEndpointsInput | undefined;
  readonly loadBalancer?: PoolLoadBalancerInput | undefined;
}

/** The target of the backend with this key. If it is a pool, its endpoints are added to those of the configuration. */
export function translateBackendTarget(input: PoolOrTarget, key: string, path: Path, context: Context): Target {
  const { endpoints, loadBalancer, dns } = input;
  if (endpoints === undefined) {
    if (loadBalancer !== undefined)
      context.report([...path, "loadBalancer"], {
        message: "is for a pool; list its servers as endpoints, or leave it out",
      });
    return translateTarget(input, path, context);
  }
  const hostname = key.slice(1);
  const translate = (list: readonly PoolEndpointInput[], at: Path, into: TargetContext): readonly Workload[] => {
    const translated = list.map((endpoint, i) => translateEndpoint(endpoint, { pool: key, dns }, [...at, i], into));
    const named = translated.flatMap((each, i) =>
      each ? [{ key: each.uid, name: each.name, origin: { path: [...at, i] } }] : [],
    );
    reportDuplicates("endpoint", named, into.report, "host");
    return translated.filter((each) => each !== undefined);
  };
  const at = [...path, "endpoints"];
  const workloads = Array.isArray(endpoints)
    ? translate(endpoints, at, context)
    : inFile(endpoints.file, [...at, "file"], context, (list, into) => translate(list, [], into));
  for (const { address } of workloads)
    if (dns !== undefined && isNamed(address)) reportFirst(address, dns, path, context.report);
  if (dns !== undefined && workloads.length > 0 && workloads.every(({ address }) => !isNamed(address)))
    context.report([...path, "dns"], { message: "no endpoint is a name; leave it out" });
  const balancing = balancingOf(loadBalancer, workloads);
  const service = { name: input.name ?? hostname, namespace: "", hostname, vips: [], ports: {}, ...balancing };
  adviseOnLocality(service, workloads, context.locality, path, context.report);
  context.pools.push({ service, workloads });
  return { type: "pool", key };
}

/** The targets that the endpoints of a pool are; none of other targets. */
export function endpointsOf(target: Target, { pools }: Context): readonly HostTarget[] {
  if (target.type !== "pool") return [];
  const { workloads = [] } = pools.find(({ service }) => serviceKey(service) === target.key) ?? {};
  return workloads.flatMap(({ address }): HostTarget[] => {
    if (address === undefined) return [];
    return ["path" in address ? { type: "unix", ...address } : { type: "static", ...address }];
  });
}

/** Endpoints with a locality are preferred if it is that of the gateway, unless the load balancer says otherwise. */
function balancingOf(input: PoolLoadBalancerInput, workloads: readonly Workload[]): Pick<Service, "loadBalancer"> {
  const written = LEVELS.filter((level) => workloads.some(({ locality }) => locality?.[level]));
  if (input === undefined && written.length === 0) return {};
  const { algorithm, slowStart, routingPreferences = written } = input ?? {};
  const mode = input?.mode ?? (routingPreferences.length > 0 ? "Failover" : "Standard");
  return {
    loadBalancer: { routingPreferences, mode, healthPolicy: "OnlyHealthy", ...defined({ algorithm, slowStart }) },
  };
}

function localityOf({
  region,
  zone,
  subzone,
}: NonNullable<PoolEndpointInput["locality"]>): NonNullable<Workload["locality"]> {
  return { ...(region && { region }), ...(zone && { zone }), ...(subzone && { subzone }) };
}

function isNamed(address: Workload["address"]): address is Extract<Workload["address"], { readonly host: string }> {
  return address !== undefined && "host" in address && isName({ type: "static", ...address });
}

const FIELDS = knownFields(endpointList);

/** The endpoints that a file lists. What is wrong with it is reported at `path`, where its name is, with the place in the file. */
function inFile(
  name: string,
  path: Path,
  context: Context,
  translate: (list: readonly PoolEndpointInput[], into: TargetContext) => readonly Workload[],
): readonly Workload[] {
  const text = context.sources.readFile(path, name);
  if (text === undefined) return [];
  // Programs write such files; variables of the environment are for people.
  const document = new ConfigDocument(name, text, {});
  const report = document.report.bind(document);
  let workloads: readonly Workload[] = [];
  if (document.ok) {
    const parsed = endpointList.safeParse(document.value, parsingWith(context.cel));
    if (parsed.success) workloads = translate(parsed.data, { ...context, report });
    else reportIssues({ value: document.value, report }, parsed.error.issues, FIELDS);
  }
  for (const {
    line,
    column,
    path: place,
    message,
    source: _,
    lint: _lint,
    related: _related,
    ...found
  } of document.diagnostics) {
    const where = `${name}:${line}:${column}: ${place === "" ? "" : `${place}: `}`;
    context.report(path, { ...found, message: `${where}${message}` });
  }
  return workloads;
}

/** undefined: the address is invalid, and has been reported. */
function translateEndpoint(
  { host, weight, backup, locality }: PoolEndpointInput,
  { pool, dns }: { readonly pool: string; readonly dns: DnsSettings | undefined },
  path: Path,
  context: TargetContext,
): Workload | undefined {
  const target = translateHost(host, path, context);
  if (target === undefined) return undefined;
  const { type: _, ...at } = target;
  const address = dns !== undefined && isName(target) ? { ...at, dns } : at;
  const name = targetName(address);
  return {
    uid: `${pool} ${name}`,
    name,
    namespace: "",
    workloadIps: [],
    status: "healthy",
    capacity: weight,
    ...(backup && { backup: true }),
    ...(locality && { locality: localityOf(locality) }),
    services: { [pool]: {} },
    address,
  };
}
