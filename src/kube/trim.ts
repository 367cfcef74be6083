import type { ObjectMeta } from "./objects.ts";

/** As large as the object itself, and of no use to us. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** The metadata that we read: without managed fields and the copy that kubectl keeps in an annotation. */
export function trimMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace = "", uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const { labels, ownerReferences } = metadata;
  const { [LAST_APPLIED]: _copy, ...annotations } = metadata.annotations ?? {};
  return {
    name,
    namespace,
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(generation !== undefined && { generation }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels !== undefined && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(ownerReferences !== undefined && { ownerReferences }),
  };
}
