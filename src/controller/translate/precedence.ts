/** Which of two objects goes first (Gateway API, "Conflicts"): the older one, then by namespace and name. */
import { type KubeObject, keyOfObject } from "../../kube/objects.ts";

/** For sorting, the one that takes precedence first. */
export function byAge(a: KubeObject, b: KubeObject): number {
  return createdAt(a) - createdAt(b) || (keyOfObject(a) < keyOfObject(b) ? -1 : 1);
}

/** Seconds since 1970; an object without a time of creation is as old as can be. */
export function createdAt({ metadata }: KubeObject): number {
  const time = Date.parse(metadata.creationTimestamp ?? "");
  return Number.isNaN(time) ? 0 : Math.floor(time / 1000);
}
