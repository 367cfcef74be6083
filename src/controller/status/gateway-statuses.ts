/** Statuses of GatewayClasses, Gateways and ListenerSets. */
import { keyOfObject } from "../../kube/keys.ts";
import { defineQuery, type Query, type Read } from "../graph/graph.ts";
import { gatewayModel } from "../translate/listeners/gateways.ts";
import { gatewayOfSet } from "../translate/listeners/listener-sets.ts";
import { classParametersProblem } from "../translate/listeners/parameters.ts";
import { isFalse, isTrue } from "../translate/model/conditions.ts";
import { isSharingUnknown } from "../translate/model/fleets.ts";
import { controllerName } from "../translate/model/gateway-class.ts";
import {
  type ConditionDraft,
  type GatewayModel,
  isOfGateway,
  type ListenerModel,
  type Problem,
} from "../translate/model/model.ts";
import { contributionsOf } from "../translate/routes/gateway-routes.ts";
import { supportedVersion } from "./api-version.ts";
import type { DesiredStatus } from "./desired.ts";
import { SUPPORTED_FEATURES } from "./features.ts";
import { gatewayProgramming, unlessHindered } from "./gateway-programmed.ts";

export function gatewayClassStatuses(read: Read): readonly DesiredStatus[] {
  return statusesOf(read, "GatewayClass", gatewayClassStatus);
}

export function gatewayStatuses(read: Read): readonly DesiredStatus[] {
  return statusesOf(read, "Gateway", gatewayStatus);
}

export function listenerSetStatuses(read: Read): readonly DesiredStatus[] {
  return statusesOf(read, "ListenerSet", listenerSetStatus);
}

function statusesOf(
  read: Read,
  kind: "GatewayClass" | "Gateway" | "ListenerSet",
  status: Query<DesiredStatus | undefined>,
): readonly DesiredStatus[] {
  return read
    .list(kind)
    .map((object) => read.query(status, keyOfObject(object)))
    .filter((each) => each !== undefined);
}

/** How many routes attach to each listener of a Gateway, by the key of the listener. */
const attachedRoutes = defineQuery<Readonly<Record<string, number>>>("attachedRoutes", (read, gateway) => {
  const counts: Record<string, number> = {};
  for (const { listeners } of contributionsOf(read, gateway))
    for (const listener of listeners) counts[listener] = (counts[listener] ?? 0) + 1;
  return counts;
});

const gatewayClassStatus = defineQuery<DesiredStatus | undefined>("gatewayClassStatus", (read, key) => {
  const found = read.get("GatewayClass", key);
  if (found?.spec.controllerName !== controllerName(read)) return undefined;
  const problem = classParametersProblem(read, found);
  const version = read.query(supportedVersion, "");
  return {
    kind: "GatewayClass",
    key,
    generation: found.metadata.generation ?? 0,
    status: {
      conditions: [
        problem === undefined
          ? isTrue("Accepted", "Accepted", "GatewayClass accepted by tracegate controller")
          : isFalse("Accepted", problem.reason, problem.message),
        ...(version === undefined ? [] : [version]),
      ],
      supportedFeatures: SUPPORTED_FEATURES,
    },
  };
});

const gatewayStatus = defineQuery<DesiredStatus | undefined>("gatewayStatus", (read, key) => {
  const gateway = read.get("Gateway", key);
  const model = read.query(gatewayModel, key);
  if (gateway === undefined || model === undefined || waits(read, key)) return undefined;
  const { addresses, condition } = read.query(gatewayProgramming, key);
  return {
    kind: "Gateway",
    key,
    generation: gateway.metadata.generation ?? 0,
    status: {
      conditions: [...model.conditions, condition],
      addresses,
      attachedListenerSets: model.listenerSets.length,
      listeners: listenerStatuses(read, key, isOfGateway),
    },
  };
});

/** undefined: its Gateway is not ours, or waits. */
const listenerSetStatus = defineQuery<DesiredStatus | undefined>("listenerSetStatus", (read, key) => {
  const set = read.get("ListenerSet", key);
  const gateway = read.query(gatewayOfSet, key);
  const model = gateway === undefined ? undefined : read.query(gatewayModel, gateway);
  if (set === undefined || gateway === undefined || model === undefined || waits(read, gateway)) return undefined;
  const listeners = model.listeners.filter(({ listenerSet }) => listenerSet === key);
  return {
    kind: "ListenerSet",
    key,
    generation: set.metadata.generation ?? 0,
    status: {
      conditions: setConditions(model, listeners, read.query(gatewayProgramming, gateway).obstacle),
      listeners: listenerStatuses(read, gateway, ({ listenerSet }) => listenerSet === key),
    },
  };
});

function waits(read: Read, gateway: string): boolean {
  return read.query(isSharingUnknown, read.get("Gateway", gateway)?.spec.gatewayClassName ?? "");
}

function setConditions(
  { key, conditions }: GatewayModel,
  listeners: readonly ListenerModel[],
  obstacle: Problem | undefined,
): readonly ConditionDraft[] {
  const refuse = (reason: string, message: string): readonly ConditionDraft[] => [
    isFalse("Accepted", reason, message),
    isFalse("Programmed", reason, message),
  ];
  if (listeners.length === 0)
    return refuse("NotAllowed", `Gateway ${key} does not allow this ListenerSet; see its spec.allowedListeners`);
  if (conditions.some(({ type, status }) => type === "Accepted" && status === "False"))
    return refuse("ParentNotAccepted", `Gateway ${key} is not accepted`);
  const invalid = listeners.filter(({ programmed }) => !programmed).map(({ name }) => name);
  const message = `Some listeners are not valid: ${invalid.join(", ")}`;
  if (invalid.length === listeners.length) return refuse("ListenersNotValid", message);
  return [
    invalid.length === 0
      ? isTrue("Accepted", "Accepted", "Successfully accepted ListenerSet")
      : isTrue("Accepted", "ListenersNotValid", message),
    unlessHindered(isTrue("Programmed", "Programmed", "Successfully programmed ListenerSet"), obstacle),
  ];
}

function listenerStatuses(read: Read, gateway: string, isOwn: (listener: ListenerModel) => boolean) {
  const counts = read.query(attachedRoutes, gateway);
  const { obstacle } = read.query(gatewayProgramming, gateway);
  return (read.query(gatewayModel, gateway)?.listeners ?? []).filter(isOwn).map(({ key, name, kinds, conditions }) => ({
    name,
    supportedKinds: kinds,
    attachedRoutes: counts[key] ?? 0,
    conditions: conditions.map((each) => unlessHindered(each, obstacle)),
  }));
}
