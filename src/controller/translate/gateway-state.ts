/**
 * The state that the proxies of a Gateway are sent. Every resource is a query that reads little, so it stays the same object until
 * one of its inputs changes: the stream finds what to send by comparing references.
 */
import { nameOfKey } from "../../base/object-key.ts";
import type { Bind, Frontend } from "../../ir/ir.ts";
import { recorded } from "../../ir/origins.ts";
import { type Address, classOfFleet, type GatewayState, nameOfResource, type Resource } from "../../xds/resources.ts";
import { defineQuery, type Pair, type Read } from "../graph/graph.ts";
import { backendModel } from "./backends/backends.ts";
import { addressesOf, prefersNear } from "./cluster/addresses.ts";
import { proxiesOf } from "./cluster/proxies.ts";
import { gatewayModel } from "./listeners/gateways.ts";
import { withFrontendTls } from "./listeners/listener-tls.ts";
import { fleetOf } from "./model/fleets.ts";
import type { ListenerModel } from "./model/model.ts";
import { frontendOf, sharedFrontend } from "./policy/frontends.ts";
import { listenerTargets, mergeAttached } from "./policy/policies.ts";
import { contributionsOf } from "./routes/gateway-routes.ts";
import { collectServiceKeys } from "./routes/routes.ts";
import { targetedPolicies } from "./targeted.ts";

/** Of a key of a Gateway (`<namespace>/<name>`); undefined: it does not exist or is not ours. */
export const gatewayState = defineQuery<GatewayState | undefined>("gatewayState", (read, key) => {
  if (read.query(gatewayModel, key) === undefined) return undefined;
  const resources = new Map<string, Resource>();
  const add = (resource: Resource): unknown => resources.set(nameOfResource(resource), resource);
  const listeners = read.query(listenerKeys, key);
  for (const bind of new Set(listeners.map(({ bind }) => bind))) {
    const resource = read.query(bindResource, [key, bind]);
    if (resource !== undefined) add(resource);
  }
  const served = new Set<string>();
  for (const listener of listeners) {
    const resource = read.query(listenerResource, [key, listener.key]);
    if (resource === undefined) continue;
    add(resource);
    served.add(listener.key);
  }
  for (const contribution of contributionsOf(read, key))
    for (const [name, resource] of contribution.resources)
      if (served.has(resource.listener)) resources.set(name, resource);
  for (const backend of read.query(gatewayBackends, key)) {
    const resource = read.query(backendResource, backend);
    if (resource !== undefined) add(resource);
  }
  for (const policy of read.query(policyResources, key)) add(policy);
  return { resources, addresses: read.query(gatewayAddresses, key) };
});

const policyResources = defineQuery<readonly Resource[]>("policyResources", (read, key) =>
  read.query(targetedPolicies, key).map((policy) => ({ kind: "policy", policy })),
);

/** Keys (`<namespace>/<name>`) of the TracegateBackends that routes of a Gateway call. */
const gatewayBackends = defineQuery<readonly string[]>("gatewayBackends", (read, key) => {
  const backends = new Set(contributionsOf(read, key).flatMap((contribution) => contribution.backends));
  return [...backends].sort();
});

/** A TracegateBackend, for dumps: routes have its target and policies themselves. Key: `<namespace>/<name>`. */
const backendResource = defineQuery<Resource | undefined>("backendResource", (read, key) => {
  const model = read.query(backendModel, key);
  if (model === undefined) return undefined;
  const { namespace, name } = nameOfKey(key);
  const { target, policies } = model;
  return { kind: "backend", backend: { key: `/${key}`, name, namespace, target, ...recorded(policies) } };
});

/** The services that routes and policies of a Gateway call, with their workloads, and where its proxies run if that matters. */
const gatewayAddresses = defineQuery<ReadonlyMap<string, Address>>("gatewayAddresses", (read, key) => {
  const services = read.query(gatewayServices, key);
  const addresses = addressesOf(read, services);
  if (!services.some((service) => prefersNear(read, service))) return addresses;
  return new Map([...proxiesOf(read, key), ...addresses]);
});

const gatewayServices = defineQuery<readonly string[]>("gatewayServices", (read, key) => {
  const services = new Set<string>();
  for (const contribution of contributionsOf(read, key))
    for (const service of contribution.services) services.add(service);
  const listeners = read.query(listenerKeys, key);
  for (const listener of listeners)
    collectServiceKeys(read.query(listenerResource, [key, listener.key])?.listener.policies, services);
  for (const bind of new Set(listeners.map(({ bind }) => bind)))
    collectServiceKeys(read.query(bindResource, [key, bind])?.bind.frontend, services);
  return [...services].sort();
});

/** The listeners of a Gateway that serve traffic. */
const listenerKeys = defineQuery<readonly { readonly key: string; readonly bind: string }[]>(
  "listenerKeys",
  (read, gateway) =>
    (read.query(gatewayModel, gateway)?.listeners ?? [])
      .filter(({ programmed }) => programmed)
      .map((listener) => ({ key: listener.key, bind: bindKey(listener) })),
);

/** `bind/<port>`, of UDP `bind/udp/<port>`. */
function bindKey({ protocol, port }: ListenerModel): string {
  return protocol === "UDP" ? `bind/udp/${port}` : `bind/${port}`;
}

/** Where Gateways share the port, what a policy of one of them sets would hold for all: such listeners are not accepted. */
function frontendAt(read: Read, gateway: string, port: number): Frontend {
  const gatewayClass = classOfFleet(read.query(fleetOf, gateway).key);
  return gatewayClass === undefined
    ? read.query(frontendOf, [gateway, String(port)]).frontend
    : read.query(sharedFrontend, gatewayClass);
}

type BindResource = Extract<Resource, { kind: "bind" }>;
type ListenerResource = Extract<Resource, { kind: "listener" }>;

const bindResource = defineQuery<BindResource | undefined, Pair>("bindResource", (read, [gateway, bind]) => {
  const listeners = (read.query(gatewayModel, gateway)?.listeners ?? []).filter(
    (listener) => listener.programmed && bindKey(listener) === bind,
  );
  const [first] = listeners;
  if (first === undefined) return undefined;
  return {
    kind: "bind",
    bind: {
      key: bindKey(first),
      host: "::",
      port: first.port,
      protocol: protocolOfBind(first),
      tunnelProtocol: "direct",
      mode: "standard",
      frontend: frontendAt(read, gateway, first.port),
    },
  };
});

/** Listeners of one bind agree on how connections begin: others conflict. */
function protocolOfBind({ protocol }: ListenerModel): Bind["protocol"] {
  switch (protocol) {
    case "HTTPS":
    case "TLS":
      return "tls";
    case "TCP":
      return "tcp";
    case "UDP":
      return "udp";
    default:
      return "http";
  }
}

const listenerResource = defineQuery<ListenerResource | undefined, Pair>("listenerResource", (read, [gateway, key]) => {
  const listener = read.query(gatewayModel, gateway)?.listeners.find((each) => each.key === key);
  if (listener === undefined || !listener.programmed || listener.protocol === "unsupported") return undefined;
  const { namespace: gatewayNamespace, name: gatewayName } = nameOfKey(gateway);
  return {
    kind: "listener",
    bind: bindKey(listener),
    listener: {
      key: listener.key,
      name: listener.name,
      gatewayName,
      gatewayNamespace,
      hostname: listener.hostname,
      protocol: listener.protocol,
      origin: listener.origin,
      ...(listener.tls !== undefined &&
        listener.tls !== "passthrough" && {
          tls: withFrontendTls(listener.tls, read.query(frontendOf, [gateway, String(listener.port)]).tls),
        }),
      ...recorded(mergeAttached(read, "gateway", listenerTargets(listener))),
    },
  };
});
