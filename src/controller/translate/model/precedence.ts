/** Which of several objects takes precedence (Gateway API, "Conflicts"): the oldest, then the first by `<namespace>/<name>`. */
import { keyOfObject } from "../../../kube/keys.ts";
import type { KubeObject } from "../../../kube/objects.ts";

/** The inputs of precedence. */
export interface Aged {
  /** `<namespace>/<name>` */
  readonly key: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** For sorting: the one that takes precedence comes first. */
export function byPrecedence(a: Aged, b: Aged): number {
  return a.created - b.created || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** `byPrecedence` of objects. */
export function byAge(a: KubeObject, b: KubeObject): number {
  return byPrecedence(agedOf(a), agedOf(b));
}

function agedOf(object: KubeObject): Aged {
  return { key: keyOfObject(object), created: createdAt(object) };
}

/** Seconds since 1970; an object without a time of creation is as old as can be. */
export function createdAt({ metadata }: KubeObject): number {
  const time = Date.parse(metadata.creationTimestamp ?? "");
  return Number.isNaN(time) ? 0 : Math.floor(time / 1000);
}
