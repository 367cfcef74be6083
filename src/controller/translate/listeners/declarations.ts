/** The listeners that a Gateway, its ListenerSets and its Ingresses declare. */
import { keyOfObject } from "../../../kube/keys.ts";
import { defineQuery } from "../../graph/graph.ts";
import type { Problem } from "../model/model.ts";
import { ingressDeclarations } from "./ingresses.ts";
import { findConflicts } from "./listener-conflicts.ts";
import { allowedSets } from "./listener-sets.ts";
import type { Declaration } from "./listeners.ts";

export interface DeclaredListener {
  readonly declaration: Declaration;
  /** With another of them. */
  readonly conflict?: Problem;
}

/** In order of precedence. Key: `<namespace>/<name>` of the Gateway. */
export const declaredListeners = defineQuery<readonly DeclaredListener[]>("declaredListeners", (read, key) => {
  const gateway = read.get("Gateway", key);
  if (gateway === undefined) return [];
  const declared = [gateway, ...allowedSets(read, gateway)].flatMap((owner) => {
    const { namespace, name } = owner.metadata;
    const object = { kind: owner.kind, namespace, name };
    return (owner.spec.listeners ?? []).map(
      (spec, i): Declaration => ({
        spec,
        gateway: key,
        ...(owner.kind === "ListenerSet" && { listenerSet: keyOfObject(owner) }),
        namespace,
        origin: { object, path: ["spec", "listeners", i] },
      }),
    );
  });
  const declarations = [...declared, ...ingressDeclarations(read, gateway)];
  const conflicts = findConflicts(declarations);
  return declarations.map((declaration) => {
    const conflict = conflicts.get(declaration);
    return { declaration, ...(conflict !== undefined && { conflict }) };
  });
});
