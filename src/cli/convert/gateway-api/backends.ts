/** Where routes send requests: Services, TracegateBackends, and pools as Services of their own. */
import { isIP } from "node:net";
import { TRACEGATE_GROUP } from "../../../kube/objects.ts";
import type { Json } from "../converted.ts";
import { nameOf } from "../names.ts";
import type { Output, Owner } from "./output.ts";
import { grant, serviceOf } from "./services.ts";
import { inCluster } from "./texts.ts";

/** What a backend of a route becomes; several for a pool whose servers have names. `named`: entries of `backends`. */
export function backendRefs(
  backend: Json,
  named: readonly Json[],
  route: string,
  owner: Owner,
  output: Output,
): readonly Json[] {
  const { host, weight, policies = {}, backend: reference } = backend;
  const entry = typeof reference === "string" ? named.find(({ name }) => `/${name}` === reference) : undefined;
  const own = { ...(entry?.policies as Json | undefined), ...(policies as Json) };
  const share = weight === undefined ? {} : { weight };
  if (typeof host === "string") return [{ ...referenceTo(host, own, route, owner, output), ...share }];
  const endpoints = (entry?.endpoints ?? backend.endpoints ?? []) as readonly Endpoint[];
  const [only] = endpoints;
  if (only !== undefined && endpoints.length === 1)
    return [{ ...referenceTo(only.host, own, route, owner, output), ...share }];
  return pool(String(entry?.name ?? route), endpoints, entry?.loadBalancer, own, owner, output).map((each) => ({
    ...each,
    ...(weight !== undefined && { weight: Number(weight) * Number(each.weight ?? 1) }),
  }));
}

interface Endpoint {
  readonly host: string;
  readonly weight?: number;
  readonly backup?: boolean;
}

function referenceTo(host: string, policies: Json, route: string, owner: Owner, output: Output): Json {
  const service = serviceOf(host);
  const written = inCluster(policies, owner, output);
  const hasPolicies = Object.keys(written).length > 0;
  if (service !== undefined) {
    grant("HTTPRoute", service, owner, output);
    if (service.namespace === undefined)
      output.findings.find("note", owner.at, `${host} is taken for a Service of the namespace of the route`);
    const { namespace, ...others } = service;
    return {
      ...(namespace === owner.namespace ? others : service),
      ...(hasPolicies && { filters: [backendFilter(written, route, owner, output)] }),
    };
  }
  const [, name = host, port] = /^(.*):(\d+)$/.exec(host) ?? [];
  const address = name.replace(/^\[(.*)\]$/, "$1");
  isOwnPod(host, address, owner, output);
  const spec = {
    static: host.startsWith("unix:") ? { unixPath: host.slice(5) } : { host: address, port: Number(port) },
    ...(hasPolicies && { policies: written }),
  };
  return {
    group: TRACEGATE_GROUP,
    kind: "TracegateBackend",
    name: output.share("TracegateBackend", owner.namespace, nameOf(host.replace(/^unix:.*\//, "")), spec),
  };
}

/** Whether a host is the machine itself, which a finding says. */
function isOwnPod(host: string, address: string, owner: Owner, output: Output): boolean {
  const isOwn = address === "localhost" || /^127\.|^::1$/.test(address);
  if (isOwn)
    output.findings.find(
      "error",
      owner.at,
      `${host} is the pod of the proxy there, which it does not call`,
      "name the Service of the application",
    );
  return isOwn;
}

/** Policies of calls as a filter of a backendRef. */
function backendFilter(policies: Json, route: string, { namespace }: Owner, output: Output): Json {
  const name = output.share("TracegatePolicy", namespace, `${route}-backend`, { backend: policies });
  return { type: "ExtensionRef", extensionRef: { group: TRACEGATE_GROUP, kind: "TracegatePolicy", name } };
}

/** A Service for servers with addresses, otherwise a split. */
function pool(
  name: string,
  endpoints: readonly Endpoint[],
  loadBalancer: unknown,
  policies: Json,
  owner: Owner,
  output: Output,
): readonly Json[] {
  const find = (message: string, remedy: string): void => output.findings.find("warning", owner.at, message, remedy);
  const parsed = endpoints.map(({ host, ...others }) => {
    const [, address = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(host) ?? [];
    return { ...others, host, address, port: Number(port) };
  });
  const algorithm = (loadBalancer as Json | undefined)?.algorithm;
  if (algorithm !== undefined && algorithm !== "RoundRobin")
    find(`pool ${name}: the algorithm ${String(algorithm)} is left out`, "proxies choose the endpoint of a Service");
  if (parsed.some(({ address }) => isIP(address) === 0)) {
    find(
      `pool ${name} becomes a split: its servers have names, so each gets its share of the requests also while it fails`,
      "name the Service of the application",
    );
    const used = parsed.filter(({ backup }) => backup !== true);
    return used.map(({ host, weight }) => ({
      ...referenceTo(host, policies, name, owner, output),
      ...(weight !== undefined && { weight }),
    }));
  }
  if (parsed.some(({ weight, backup }) => weight !== undefined || backup === true))
    find(
      `pool ${name}: weight and backup are left out: endpoints of a Service are equal`,
      "use backendRefs with weights, or another Service",
    );
  const used = parsed.filter(({ backup }) => backup !== true);
  const port = used[0]?.port ?? 80;
  const service = output.share("Service", owner.namespace, nameOf(name), { ports: [{ name: "http", port }] });
  // The API server permits no loopback addresses in EndpointSlices.
  const reachable = used.filter(({ host, address }) => !isOwnPod(host, address, owner, output));
  const slices = Map.groupBy(reachable, (each) => `${isIP(each.address)} ${each.port}`);
  for (const slice of slices.values()) {
    const [first] = slice;
    if (first === undefined) continue;
    const content = {
      addressType: `IPv${isIP(first.address)}`,
      ports: [{ name: "http", port: first.port }],
      endpoints: slice.map(({ address }) => ({ addresses: [address] })),
    };
    const labels = { "kubernetes.io/service-name": service };
    output.share("EndpointSlice", owner.namespace, service, content, { labels });
  }
  const filters = Object.keys(policies).length > 0;
  return [
    {
      name: service,
      port,
      ...(filters && { filters: [backendFilter(inCluster(policies, owner, output), name, owner, output)] }),
    },
  ];
}
