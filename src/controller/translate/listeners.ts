/** What listeners of Gateways and ListenerSets declare, each looked at by itself. */
import type { GatewayListener, RouteGroupKind } from "../../kube/objects.ts";
import { GATEWAY_GROUP } from "./gateway-class.ts";
import type { ListenerModel, RouteKind } from "./model.ts";

/** A listener of a Gateway, or of a ListenerSet that it accepts. */
export interface Declaration {
  readonly spec: GatewayListener;
  /** `<namespace>/<name>` of the Gateway. */
  readonly gateway: string;
  /** `<namespace>/<name>`; absent: the Gateway itself declares it. */
  readonly listenerSet?: string;
  /** Namespace of the object that declares it. */
  readonly namespace: string;
}

/** Why a listener is not accepted, or a reference not resolved. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

/** Ports of the proxy's own servers: admin, stats, readiness. */
const RESERVED_PORTS: readonly number[] = [15000, 15020, 15021];

type Protocol = ListenerModel["protocol"];

export function protocolOf({ protocol }: GatewayListener): Protocol {
  return protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS" || protocol === "TCP" || protocol === "UDP"
    ? protocol
    : "unsupported";
}

/** What kinds of routes a listener can serve at all. */
export function possibleKinds({ protocol, tls }: GatewayListener): readonly RouteKind[] {
  switch (protocol) {
    case "HTTP":
    case "HTTPS":
      return ["HTTPRoute", "GRPCRoute"];
    case "TLS":
      return tls?.mode === "Passthrough" ? ["TLSRoute"] : ["TLSRoute", "TCPRoute"];
    case "TCP":
      return ["TCPRoute"];
    case "UDP":
      return ["UDPRoute"];
    default:
      return [];
  }
}

/** The kinds of `allowedRoutes.kinds` that the listener can serve, and those that it cannot. */
export function allowedKinds(spec: GatewayListener): {
  readonly kinds: readonly RouteGroupKind[];
  readonly invalid: readonly RouteGroupKind[];
} {
  const possible: readonly string[] = possibleKinds(spec);
  const wanted = spec.allowedRoutes?.kinds ?? [];
  if (wanted.length === 0) return { kinds: possible.map((kind) => ({ group: GATEWAY_GROUP, kind })), invalid: [] };
  const isPossible = ({ group = GATEWAY_GROUP, kind }: RouteGroupKind): boolean =>
    group === GATEWAY_GROUP && possible.includes(kind);
  return {
    kinds: wanted.filter(isPossible).map(({ kind }) => ({ group: GATEWAY_GROUP, kind })),
    invalid: wanted.filter((kind) => !isPossible(kind)),
  };
}

/** Why a listener is not accepted, regardless of others. */
export function ownProblem({ protocol, port }: GatewayListener): Problem | undefined {
  if (protocolOf({ protocol, port, name: "" }) === "unsupported")
    return { reason: "UnsupportedProtocol", message: `Protocol ${protocol} is not supported` };
  if (RESERVED_PORTS.includes(port)) return { reason: "PortUnavailable", message: "port is reserved" };
  return undefined;
}

/** `<namespace>/<gateway>.<listener>`; of a set `<namespace>/<gateway>.<set namespace>/<set>.<listener>`. */
export function listenerKey({ gateway, listenerSet, spec }: Declaration): string {
  return [gateway, ...(listenerSet === undefined ? [] : [listenerSet]), spec.name].join(".");
}
