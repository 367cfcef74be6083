/** ListenerSets: which Gateway they add listeners to, and whether it lets them. */
import { objectKey } from "../../../base/object-key.ts";
import { keyOfObject } from "../../../kube/keys.ts";
import { GATEWAY_GROUP, type Gateway, type ListenerSet } from "../../../kube/objects.ts";
import { defineIndex, defineQuery, type Read } from "../../graph/graph.ts";
import { isFromAllowed } from "../model/namespaces.ts";
import { byAge } from "../model/precedence.ts";

/** ListenerSets by the key of the Gateway that they name. */
const BY_GATEWAY = defineIndex("ListenerSet", (set) => {
  const parent = parentOfSet(set);
  return parent === undefined ? [] : [parent];
});

/** Key of the Gateway that a ListenerSet names, whether or not it exists. */
export const gatewayOfSet = defineQuery<string | undefined>("gatewayOfSet", (read, key) => {
  const set = read.get("ListenerSet", key);
  return set === undefined ? undefined : parentOfSet(set);
});

function parentOfSet({ metadata, spec }: ListenerSet): string | undefined {
  const { group = GATEWAY_GROUP, kind = "Gateway", namespace = metadata.namespace, name } = spec.parentRef;
  return group === GATEWAY_GROUP && kind === "Gateway" ? objectKey({ namespace, name }) : undefined;
}

/**
 * The ListenerSets that `spec.allowedListeners` lets in, by default none, in order of precedence: the oldest first, then by
 * namespace and name (ListenerSet, `spec.listeners`).
 */
export function allowedSets(read: Read, gateway: Gateway): readonly ListenerSet[] {
  const { from = "None", ...selector } = gateway.spec.allowedListeners?.namespaces ?? {};
  const { namespace } = gateway.metadata;
  return read
    .find(BY_GATEWAY, keyOfObject(gateway))
    .filter((set) => isFromAllowed(read, { from, ...selector }, namespace, set.metadata.namespace))
    .sort(byAge);
}
