/** Which listeners a route attaches to (Gateway API, "Attaching to Gateways"). */
import { intersectHostnames } from "../../../base/hostnames.ts";
import { objectKey } from "../../../base/object-key.ts";
import { GATEWAY_GROUP, type ParentReference } from "../../../kube/objects.ts";
import type { Read } from "../../graph/graph.ts";
import { gatewayModel } from "../listeners/gateways.ts";
import { gatewayOfSet } from "../listeners/listener-sets.ts";
import { isFalse, isTrue } from "../model/conditions.ts";
import {
  type ConditionDraft,
  type GatewayModel,
  isOfGateway,
  type ListenerModel,
  type RouteKind,
} from "../model/model.ts";
import { isFromAllowed } from "../model/namespaces.ts";

/** The route that attaches. */
interface AttachingRoute {
  readonly kind: RouteKind;
  readonly namespace: string;
  /** Lower-case; empty = any. TCPRoutes and UDPRoutes have none. */
  readonly hostnames: readonly string[];
}

export interface Attaching {
  /** `<namespace>/<name>` of the Gateway that the parent is or belongs to; absent if it belongs to none. */
  readonly gateway?: string;
  /** Empty unless `condition` is true. */
  readonly listeners: readonly {
    readonly listener: ListenerModel;
    /** The hostnames that route and listener share, lower-case; empty = any. */
    readonly hostnames: readonly string[];
  }[];
  /** The parent's contribution to the condition Accepted. */
  readonly condition: ConditionDraft;
}

/** undefined: the parent is not ours, so its status is not ours to write. */
export function attach(read: Read, route: AttachingRoute, parentRef: ParentReference): Attaching | undefined {
  const { group = GATEWAY_GROUP, kind = "Gateway", namespace = route.namespace, name } = parentRef;
  if (group !== GATEWAY_GROUP) return undefined;
  const key = objectKey({ namespace, name });
  if (kind === "Gateway") {
    const gateway = read.query(gatewayModel, key);
    if (gateway === undefined) return undefined;
    return among(read, route, parentRef, gateway, route.kind === "Ingress" ? isForIngresses : isOfGateway);
  }
  if (kind !== "ListenerSet") return undefined;
  const parent = read.query(gatewayOfSet, key);
  const gateway = parent === undefined ? undefined : read.query(gatewayModel, parent);
  if (gateway === undefined) return undefined;
  return among(read, route, parentRef, gateway, ({ listenerSet }) => listenerSet === key);
}

function among(
  read: Read,
  route: AttachingRoute,
  { sectionName, port }: ParentReference,
  gateway: GatewayModel,
  isOfParent: (listener: ListenerModel) => boolean,
): Attaching {
  const refuse = (reason: string, message: string): Attaching => ({
    gateway: gateway.key,
    listeners: [],
    condition: isFalse("Accepted", reason, message),
  });
  const own = gateway.listeners.filter(isOfParent);
  const named = own.filter(
    (listener) =>
      (sectionName === undefined || listener.name === sectionName) && (port === undefined || listener.port === port),
  );
  if (named.length === 0) {
    const wanted = [
      ...(sectionName === undefined ? [] : [`sectionName ${sectionName}`]),
      ...(port === undefined ? [] : [`port ${port}`]),
    ].join(" and ");
    const message =
      wanted === ""
        ? "The parent has no listeners, or its Gateway does not allow them"
        : `The parent has no listener with ${wanted}, only ${choice(own)}`;
    return refuse("NoMatchingParent", message);
  }
  const accepted = named.filter((listener) => listener.accepted);
  if (accepted.length === 0)
    return refuse("NoMatchingParent", `The Gateway does not accept ${listing(named)}; see the conditions there`);
  // An Ingress is admitted where an HTTPRoute would be.
  const wanted = route.kind === "Ingress" ? "HTTPRoute" : route.kind;
  const taking = accepted.filter((listener) => listener.kinds.some(({ kind }) => kind === wanted));
  if (taking.length === 0) {
    const kinds = new Set(accepted.flatMap((listener) => listener.kinds.map(({ kind }) => kind)));
    return refuse(
      "NotAllowedByListeners",
      `Routes of kind ${route.kind} are not allowed by ${listing(accepted)}, only ${[...kinds].join(", ")}`,
    );
  }
  const allowing = taking.filter((listener) =>
    isFromAllowed(read, listener.namespaces, listener.namespace, route.namespace),
  );
  if (allowing.length === 0)
    return refuse(
      "NotAllowedByListeners",
      `Routes of namespace ${route.namespace} are not allowed by ${listing(taking)}; see allowedRoutes.namespaces there, by default only its own`,
    );
  const listeners = allowing.flatMap((listener) => {
    const hostnames = intersectHostnames(listener.hostname, route.hostnames);
    return hostnames === undefined ? [] : [{ listener, hostnames }];
  });
  if (listeners.length === 0) {
    const taken = allowing.map(({ name, hostname }) => `${name} (${hostname})`).join(", ");
    return refuse(
      "NoMatchingListenerHostname",
      `No hostname of the route matches ${allowing.length === 1 ? "listener" : "listeners"} ${taken}`,
    );
  }
  return { gateway: gateway.key, listeners, condition: isTrue("Accepted", "Accepted", "Route is accepted") };
}

function isForIngresses(listener: ListenerModel): boolean {
  return isOfGateway(listener) || listener.ingress !== undefined;
}

/** `listener http`, `listeners http, https`. */
function listing(listeners: readonly ListenerModel[]): string {
  const names = listeners.map(({ name }) => name).join(", ");
  return `${listeners.length === 1 ? "listener" : "listeners"} ${names}`;
}

/** More would hide the message. */
const CHOICES = 8;

/** `http (port 80), https (port 443)`. */
function choice(listeners: readonly ListenerModel[]): string {
  const shown = listeners.slice(0, CHOICES).map(({ name, port }) => `${name} (port ${port})`);
  return [...shown, ...(listeners.length > CHOICES ? ["…"] : [])].join(", ");
}
