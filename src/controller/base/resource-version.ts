import type { ObjectMeta } from "../../kube/objects.ts";

interface Versioned {
  readonly metadata: Pick<ObjectMeta, "resourceVersion">;
}

/**
 * Whether `a` is an older version of an object than `b`. Versions are numbers that grow (Kubernetes 1.35 guarantees it, and no
 * earlier one did otherwise); if they are not, nothing is older.
 */
export function isOlder(a: Versioned, b: Versioned): boolean {
  const [before, after] = [numberOf(a), numberOf(b)];
  return before !== undefined && after !== undefined && before < after;
}

function numberOf({ metadata: { resourceVersion = "" } }: Versioned): bigint | undefined {
  return /^\d+$/.test(resourceVersion) ? BigInt(resourceVersion) : undefined;
}
