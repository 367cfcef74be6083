/** ReferenceGrants: which objects may refer to objects of other namespaces. */
import { defineIndex, type Read } from "../../graph/graph.ts";

const GRANTS = defineIndex("ReferenceGrant", (grant) => [grant.metadata.namespace]);

/**
 * Whether an object may refer to one of another namespace (Gateway API, ReferenceGrant). References within a namespace need no
 * grant. `group` is empty for the core group.
 */
export function isGranted(
  read: Read,
  from: { readonly group: string; readonly kind: string; readonly namespace: string },
  to: { readonly group: string; readonly kind: string; readonly namespace: string; readonly name: string },
): boolean {
  if (from.namespace === to.namespace) return true;
  return read
    .find(GRANTS, to.namespace)
    .some(
      ({ spec }) =>
        spec.from.some(
          (each) => each.group === from.group && each.kind === from.kind && each.namespace === from.namespace,
        ) &&
        spec.to.some((each) => each.group === to.group && each.kind === to.kind && (each.name ?? to.name) === to.name),
    );
}
