import type { Ir } from "../ir/ir.ts";
import type { PolicySet } from "../policies/policy-set.ts";
import type { Address, ConnectionSettings, PoolLimits } from "../upstream/pool-target.ts";
import type { HttpVersion } from "../upstream/settings.ts";
import type { Target } from "../upstream/target.ts";

/** Services and their workloads, among which proxies may be. */
type Discovery = Pick<Ir, "services" | "workloads">;

/** What the policies of a backend say about how its connections are made. */
export function connectionOf(
  { backendTLS, tcp, backendTunnel, http }: PolicySet,
  discovery: Discovery,
): ConnectionSettings {
  return {
    ...(backendTLS !== undefined && { tls: backendTLS }),
    ...(tcp !== undefined && { tcp }),
    ...(http?.version !== undefined && { version: http.version }),
    ...limitsOf(tcp, http),
    ...(backendTunnel !== undefined && {
      tunnel: {
        proxies: addressesOf(backendTunnel.proxy, discovery),
        authorization: backendTunnel.authorization,
        tls: backendTunnel.tls,
      },
    }),
  };
}

function limitsOf(tcp: PoolLimits = {}, http: PoolLimits = {}): Pick<ConnectionSettings, "limits"> {
  const maxConnections = http.maxConnections ?? tcp.maxConnections;
  const maxPendingRequests = http.maxPendingRequests ?? tcp.maxPendingRequests;
  if (maxConnections === undefined && maxPendingRequests === undefined) return {};
  return { limits: { maxConnections, maxPendingRequests } };
}

/** `appProtocols` of services that say which version of HTTP is spoken (reference 2.5); others say nothing about it. */
const VERSIONS: ReadonlyMap<string, HttpVersion> = new Map([
  ["http1", "HTTP/1.1"],
  ["http2", "HTTP/2.0"],
  ["grpc", "HTTP/2.0"],
  ["kubernetes.io/h2c", "HTTP/2.0"],
]);

export function versionOf(appProtocol: string | undefined): HttpVersion | undefined {
  return appProtocol === undefined ? undefined : VERSIONS.get(appProtocol.toLowerCase());
}

function addressesOf(target: Target, { services, workloads }: Discovery): Address[] {
  if (target.type === "static") return [{ host: target.host, port: target.port }];
  if (target.type === "unix") return [{ path: target.path }];
  if (target.type !== "service") return [];
  const { key, port } = target;
  const common = services.find((each) => `${each.namespace}/${each.hostname}` === key)?.ports[port];
  return workloads.flatMap(({ services, status, workloadIps, hostname }) => {
    const own = services[key];
    const at = own?.[port] ?? common;
    if (own === undefined || at === undefined || status !== "healthy") return [];
    const hosts = workloadIps.length > 0 ? workloadIps : hostname ? [hostname] : [];
    return hosts.map((host) => ({ host, port: at }));
  });
}
