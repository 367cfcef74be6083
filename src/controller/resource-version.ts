import type { KubeObject } from "../kube/objects.ts";

/**
 * Whether `a` is an older version of an object than `b`. Versions are numbers that grow (Kubernetes 1.35 guarantees it, and no
 * earlier one did otherwise); if they are not, nothing is older.
 */
export function isOlder(a: KubeObject, b: KubeObject): boolean {
  const [before, after] = [numberOf(a), numberOf(b)];
  return before !== undefined && after !== undefined && before < after;
}

function numberOf({ metadata: { resourceVersion = "" } }: KubeObject): bigint | undefined {
  return /^\d+$/.test(resourceVersion) ? BigInt(resourceVersion) : undefined;
}
