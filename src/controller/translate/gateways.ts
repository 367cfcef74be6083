/** A Gateway with the listeners that it and its ListenerSets declare. */
import { objectKey } from "../../kube/objects.ts";
import type { Read } from "../graph.ts";
import { defineQuery } from "../graph.ts";
import { isFalse, isTrue } from "./conditions.ts";
import { ourClass } from "./gateway-class.ts";
import { findConflicts } from "./listener-conflicts.ts";
import { allowedKinds, type Declaration, listenerKey, ownProblem, type Problem, protocolOf } from "./listeners.ts";
import type { ConditionDraft, GatewayModel, ListenerModel } from "./model.ts";

/** undefined: the Gateway does not exist, or its class is not ours. */
export const gatewayModel = defineQuery<GatewayModel | undefined>("gatewayModel", (read, key) => {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined || ourClass(read, gateway) === undefined) return undefined;
  const { namespace } = gateway.metadata;
  const declarations = (gateway.spec.listeners ?? []).map((spec): Declaration => ({ spec, gateway: key, namespace }));
  const conflicts = findConflicts(declarations);
  const listeners = declarations.map((each) => translateListener(read, each, conflicts.get(each)));
  return { key, listeners, listenerSets: [], conditions: [acceptance(listeners)] };
});

function translateListener(_read: Read, declaration: Declaration, conflict: Problem | undefined): ListenerModel {
  const { spec, gateway, listenerSet, namespace } = declaration;
  const { kinds, invalid } = allowedKinds(spec);
  const problem = conflict ?? ownProblem(spec);
  const unresolved = invalid.length === 0 ? undefined : invalidKinds(declaration);
  const { from = "Same", ...selector } = spec.allowedRoutes?.namespaces ?? {};
  return {
    key: listenerKey(declaration),
    gateway,
    ...(listenerSet !== undefined && { listenerSet }),
    name: spec.name,
    port: spec.port,
    protocol: protocolOf(spec),
    hostname: (spec.hostname ?? "").toLowerCase(),
    kinds,
    namespaces: { from, ...selector },
    namespace,
    accepted: problem === undefined,
    programmed: problem === undefined,
    conditions: listenerConditions(problem, conflict, unresolved),
  };
}

function invalidKinds({ spec }: Declaration): Problem {
  const { invalid } = allowedKinds(spec);
  const names = invalid.map(({ group, kind }) =>
    objectKey({ ...(group !== undefined && { namespace: group }), name: kind }),
  );
  return {
    reason: "InvalidRouteKinds",
    message: `A listener with protocol ${spec.protocol} cannot serve routes of kind ${names.join(", ")}`,
  };
}

function listenerConditions(
  problem: Problem | undefined,
  conflict: Problem | undefined,
  unresolved: Problem | undefined,
): ConditionDraft[] {
  return [
    problem === undefined
      ? isTrue("Accepted", "Accepted", "Listener is accepted")
      : isFalse("Accepted", problem.reason, problem.message),
    conflict === undefined
      ? isFalse("Conflicted", "NoConflicts", "Listener does not conflict with another")
      : isTrue("Conflicted", conflict.reason, conflict.message),
    unresolved === undefined
      ? isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved")
      : isFalse("ResolvedRefs", unresolved.reason, unresolved.message),
    problem === undefined
      ? isTrue("Programmed", "Programmed", "Listener is programmed")
      : isFalse("Programmed", problem.reason, problem.message),
  ];
}

function acceptance(listeners: readonly ListenerModel[]): ConditionDraft {
  const rejected = listeners.filter(({ accepted }) => !accepted).map(({ name }) => name);
  if (rejected.length === 0) return isTrue("Accepted", "Accepted", "Successfully accepted Gateway");
  const message = `Some listeners are not accepted: ${rejected.join(", ")}`;
  const status = rejected.length === listeners.length ? isFalse : isTrue;
  return status("Accepted", "ListenersNotValid", message);
}
