import type { ListenerSet } from "../../kube/objects.ts";
import { objectKey } from "../../kube/objects.ts";
import { defineIndex, defineQuery } from "../graph.ts";
import { GATEWAY_GROUP } from "./gateway-class.ts";

/** ListenerSets by the key of the Gateway that they name. */
export const SETS_OF_GATEWAY = defineIndex("ListenerSet", (set) => {
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
