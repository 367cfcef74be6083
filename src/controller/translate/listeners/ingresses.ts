/**
 * Ingresses: which Gateway serves them, which hosts are theirs, and the TLS listeners that they add to the Gateway. An IngressClass of
 * ours names the Gateway in `spec.parameters`. An Ingress has the rights of an HTTPRoute and a ListenerSet there: `allowedRoutes` of
 * the Gateway's listeners admit its rules, `allowedListeners` its certificates.
 */

import { keyOfObject } from "../../../kube/keys.ts";
import { GATEWAY_GROUP, type Gateway, type Ingress } from "../../../kube/objects.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import { controllerName } from "../model/gateway-class.ts";
import { isFromAllowed } from "../model/namespaces.ts";
import { byAge } from "../model/precedence.ts";
import type { Declaration } from "./listeners.ts";

/** What serves an Ingress of ours, or why nothing does. */
type IngressParent = { readonly gateway: string } | { readonly problem: string };

/** How an Ingress named its class before `spec.ingressClassName`. */
const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

/** Key: `<namespace>/<name>`; undefined: there is no such Ingress, or its class is not ours. */
export const parentOfIngress = defineQuery<IngressParent | undefined>("parentOfIngress", (read, key) => {
  const ingress = read.get("Ingress", key);
  const name = ingress?.spec.ingressClassName ?? ingress?.metadata.annotations?.[CLASS_ANNOTATION];
  const spec = name === undefined ? undefined : read.get("IngressClass", name)?.spec;
  if (spec?.controller !== controllerName(read)) return undefined;
  const { apiGroup, kind, name: gateway, namespace } = spec.parameters ?? {};
  if (apiGroup !== GATEWAY_GROUP || kind !== "Gateway" || namespace === undefined)
    return {
      problem: `IngressClass ${name} names no Gateway; set spec.parameters to {apiGroup: ${GATEWAY_GROUP}, kind: Gateway, scope: Namespace, namespace: …, name: …}`,
    };
  return { gateway: `${namespace}/${gateway}` };
});

/** Keys of the Ingresses that a Gateway serves, in order of precedence. */
export const ingressesOfGateway = defineQuery<readonly string[]>("ingressesOfGateway", (read, gateway) =>
  [...read.list("Ingress")]
    .sort(byAge)
    .map(keyOfObject)
    .filter((key) => {
      const parent = read.query(parentOfIngress, key);
      return parent !== undefined && "gateway" in parent && parent.gateway === gateway;
    }),
);

/** The hosts of an Ingress, lower-case; an empty one stands for all. */
export function hostsOf({ spec: { rules = [], defaultBackend } }: Ingress): readonly string[] {
  const hosts = rules.map(({ host = "" }) => host.toLowerCase());
  return [...new Set(defaultBackend === undefined ? hosts : [...hosts, ""])];
}

/**
 * The namespace that each host belongs to at a Gateway: that of the oldest Ingress with the host. Without this, whoever writes an Ingress
 * could take paths of another namespace's host.
 */
export const hostOwners = defineQuery<Readonly<Record<string, string>>>("hostOwners", (read, key) => {
  const owners: Record<string, string> = Object.create(null);
  const gateway = read.get("Gateway", key);
  for (const each of gateway === undefined ? [] : admitted(read, gateway))
    for (const host of hostsOf(each)) owners[host] ??= each.metadata.namespace;
  return owners;
});

/** The Ingresses of namespaces from which some listener of the Gateway takes routes. */
function admitted(read: Read, gateway: Gateway): readonly Ingress[] {
  const { metadata, spec } = gateway;
  const listeners = (spec.listeners ?? []).filter(({ protocol }) => protocol === "HTTP" || protocol === "HTTPS");
  return read.query(ingressesOfGateway, keyOfObject(gateway)).flatMap((key) => {
    const ingress = read.get("Ingress", key);
    const isAdmitted = listeners.some(({ allowedRoutes }) =>
      isFromAllowed(read, allowedRoutes?.namespaces ?? {}, metadata.namespace, ingress?.metadata.namespace ?? ""),
    );
    return ingress !== undefined && isAdmitted ? ingress : [];
  });
}

const HTTPS_PORT = 443;

/** An HTTPS listener for each host in the `tls` of Ingresses; of several with one host that of the oldest. In order of precedence. */
export function ingressDeclarations(read: Read, gateway: Gateway): readonly Declaration[] {
  const key = keyOfObject(gateway);
  const owners = read.query(hostOwners, key);
  const declarations = new Map<string, Declaration>();
  for (const ingress of admitted(read, gateway)) {
    const { namespace, name } = ingress.metadata;
    if (!mayAddListeners(read, gateway, namespace)) continue;
    for (const { host, secretName, index } of certificatesOf(ingress)) {
      if (declarations.has(host) || (owners[host] ?? namespace) !== namespace) continue;
      declarations.set(host, {
        spec: {
          name: host === "" ? "any-host" : host,
          ...(host !== "" && { hostname: host }),
          port: HTTPS_PORT,
          protocol: "HTTPS",
          tls: { certificateRefs: [{ name: secretName }] },
        },
        gateway: key,
        ingress: keyOfObject(ingress),
        namespace,
        origin: { object: { kind: "Ingress", namespace, name }, path: ["spec", "tls", index] },
      });
    }
  }
  return [...declarations.values()];
}

/** Whether a Gateway lets Ingresses of a namespace add listeners, as it lets ListenerSets. */
export function mayAddListeners(read: Read, { metadata, spec }: Gateway, namespace: string): boolean {
  const { from = "None", ...selector } = spec.allowedListeners?.namespaces ?? {};
  return isFromAllowed(read, { from, ...selector }, metadata.namespace, namespace);
}

/** The certificate of each host of an Ingress: without `hosts`, a certificate is for all hosts of the rules. */
export function certificatesOf(
  ingress: Ingress,
): readonly { readonly host: string; readonly secretName: string; readonly index: number }[] {
  return (ingress.spec.tls ?? []).flatMap(({ hosts = [], secretName = "" }, index) => {
    if (secretName === "") return [];
    const named = hosts.length > 0 ? hosts : hostsOf(ingress);
    return named.map((host) => ({ host: host.toLowerCase(), secretName, index }));
  });
}
