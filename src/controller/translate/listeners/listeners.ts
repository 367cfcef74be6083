/** What a listener of a Gateway or ListenerSet declares, regardless of other listeners. */
import type { Origin } from "../../../base/origin.ts";
import { GATEWAY_GROUP, type GatewayListener, type RouteGroupKind } from "../../../kube/objects.ts";
import type { ListenerModel, Problem, RouteKind } from "../model/model.ts";

/** A listener of a Gateway, or of a ListenerSet that it accepts. */
export interface Declaration {
  readonly spec: GatewayListener;
  /** `<namespace>/<name>` of the Gateway. */
  readonly gateway: string;
  /** `<namespace>/<name>`; absent: the Gateway itself declares it. */
  readonly listenerSet?: string;
  /** `<namespace>/<name>` of the Ingress that declares it. */
  readonly ingress?: string;
  /** Namespace of the object that declares it. */
  readonly namespace: string;
  readonly origin: Origin;
}

/** Ports of the proxy's own servers: admin, stats, readiness. */
const RESERVED_PORTS: readonly number[] = [15000, 15020, 15021];

type Protocol = ListenerModel["protocol"];

export function protocolOf({ protocol }: Pick<GatewayListener, "protocol">): Protocol {
  return protocol === "HTTP" || protocol === "HTTPS" || protocol === "TLS" || protocol === "TCP" || protocol === "UDP"
    ? protocol
    : "unsupported";
}

/** The kinds of routes that a listener can serve with its protocol. */
function possibleKinds({ protocol, tls }: GatewayListener): readonly RouteKind[] {
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

/** The kinds that the listener serves: those of `allowedRoutes.kinds` that are possible, by default all of them. */
export function allowedKinds(spec: GatewayListener): readonly RouteGroupKind[] {
  const wanted = spec.allowedRoutes?.kinds ?? [];
  if (wanted.length === 0) return possibleKinds(spec).map((kind) => ({ group: GATEWAY_GROUP, kind }));
  return wanted.filter((kind) => isPossible(kind, spec)).map(({ kind }) => ({ group: GATEWAY_GROUP, kind }));
}

/** About kinds in `allowedRoutes.kinds` that the listener cannot serve. */
export function invalidKinds(spec: GatewayListener): Problem | undefined {
  const invalid = (spec.allowedRoutes?.kinds ?? []).filter((kind) => !isPossible(kind, spec));
  if (invalid.length === 0) return undefined;
  const names = invalid.map(({ group = GATEWAY_GROUP, kind }) => (group === GATEWAY_GROUP ? kind : `${group}/${kind}`));
  return {
    reason: "InvalidRouteKinds",
    message: `A listener with protocol ${spec.protocol} cannot serve routes of kind ${names.join(", ")}`,
  };
}

function isPossible({ group = GATEWAY_GROUP, kind }: RouteGroupKind, spec: GatewayListener): boolean {
  return group === GATEWAY_GROUP && possibleKinds(spec).some((possible) => possible === kind);
}

/** Why a listener is not accepted, regardless of others. */
export function ownProblem({ protocol, port }: GatewayListener): Problem | undefined {
  if (protocolOf({ protocol }) === "unsupported")
    return {
      reason: "UnsupportedProtocol",
      message: `Protocol ${protocol} is not supported, only HTTP, HTTPS, TLS, TCP and UDP`,
    };
  if (RESERVED_PORTS.includes(port))
    return {
      reason: "PortUnavailable",
      message: `Port ${port} is one of the proxy's own: ${RESERVED_PORTS.join(", ")}`,
    };
  return undefined;
}

/** `ListenerModel.key`. */
export function listenerKey({ gateway, listenerSet, ingress, spec }: Declaration): string {
  const owner = listenerSet ?? ingress;
  return [gateway, ...(owner === undefined ? [] : [owner]), spec.name].join(".");
}
