/**
 * Hosts inside the cluster. By a host name or an address, the author of a TracegateBackend or of a policy could reach Services of other
 * namespaces without a ReferenceGrant, so such hosts are invalid unless the operator allows them. Only proxies know what a name outside the
 * cluster resolves to: see `config.dns.denyNetworks` (`src/upstream/resolve/lookup-rules.ts`).
 */
import { canonicalAddress, Networks } from "../../../base/ip-address.ts";
import type { HostCheck } from "../../../translation/target.ts";
import { comparableName, isBelow } from "../../../upstream/resolve/lookup-rules.ts";
import { defineIndex, defineQuery, type Pair, type Read } from "../../graph/graph.ts";
import { DEFAULT_HOST_RULES } from "../../graph/inputs.ts";

/** Addresses of pods and Services. EndpointSlices include those of the API server. */
const PODS = defineIndex("Pod", ({ status: { podIP, podIPs = [] } = {} }) =>
  canonical([podIP, ...podIPs.map(({ ip }) => ip)]),
);
const SERVICES = defineIndex("Service", ({ spec: { clusterIP, clusterIPs = [] } }) =>
  canonical([clusterIP, ...clusterIPs]),
);
const SLICES = defineIndex("EndpointSlice", ({ endpoints }) =>
  canonical((endpoints ?? []).flatMap(({ addresses }) => addresses)),
);

/** Whether a host that an object of `namespace` names is inside the cluster, and how to reach it otherwise. */
export function hostCheck(read: Read, namespace: string): HostCheck {
  return (host) => {
    const why = read.query(refusal, [namespace, host]);
    return why === undefined ? undefined : { message: why, cause: { code: "clusterHost" } };
  };
}

/** Of a namespace and a host. A separate query: pods come and go, and most hosts do not depend on them. */
const refusal = defineQuery<string | undefined, Pair>("hostRefusal", (read, [namespace, written]) => {
  const host = comparableName(written);
  const { allowClusterHosts, domains, denyNetworks } = read.get("HostRules", "controller") ?? DEFAULT_HOST_RULES;
  const address = canonicalAddress(host.replace(/%.*$/, ""));
  if (address !== undefined && new Networks(denyNetworks).isReachedBy(address))
    return `${host} is in a network that the operator excludes`;
  if (allowClusterHosts) return undefined;
  const where = address === undefined ? nameInside(read, host, domains) : addressInside(read, address, namespace);
  return where === undefined ? undefined : `${host} ${where}; ${INSTEAD}`;
});

const INSTEAD =
  "use backendRef, with a ReferenceGrant if it is in another namespace, or ask the operator to set gatewayParameters.allowClusterHosts";

function nameInside(read: Read, name: string, domains: readonly string[]): string | undefined {
  const labels = name.split(".");
  const last = labels.at(-1) ?? "";
  // The system also reads these as IPv4 addresses, such as `0x7f.1` and `167772161`.
  if (/^(\d+|0x[\da-f]*)$/.test(last)) return "is neither a name nor an address in its usual form";
  if (labels.length === 1) return "is a name without a domain, which is completed inside the cluster";
  const isInside = ["svc", "pod", ...domains].some((domain) => isBelow(name, domain));
  // `shop.other`, or `web-0.shop.other` of a pod: completed by the search domains of pods. So is `_http._tcp.shop.other`, which names a
  // port in front (https://github.com/kubernetes/dns/blob/master/docs/specification.md, 2.3.2).
  const service =
    labels.filter((label) => !label.startsWith("_")).length > 3
      ? undefined
      : read.get("Service", `${last}/${labels.at(-2)}`);
  return isInside || service !== undefined ? "is a name inside the cluster" : undefined;
}

/** Addresses of the same namespace give no more access than a backendRef. */
function addressInside(read: Read, address: string, namespace: string): string | undefined {
  const objects = [...read.find(PODS, address), ...read.find(SERVICES, address), ...read.find(SLICES, address)];
  const isOthers = objects.some(({ metadata }) => metadata.namespace !== namespace);
  return isOthers ? "is an address of another namespace" : undefined;
}

function canonical(addresses: readonly (string | undefined)[]): readonly string[] {
  return [...new Set(addresses.flatMap((each) => canonicalAddress(each ?? "") ?? []))];
}
