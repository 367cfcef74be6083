/** References to objects of the cluster, as values and as texts by which maps file them. Only this file and base/object-key.ts take these apart. */
import { type NamespacedName, objectKey } from "../base/object-key.ts";
import type { KubeObject } from "./objects.ts";

/** An object, or a section of it: a listener of a Gateway, a rule of a route, a port (its number) of a Service. */
export interface ObjectRef<K extends string = string> extends NamespacedName {
  readonly kind: K;
  readonly section?: string | undefined;
}

export function keyOfObject({ metadata }: KubeObject): string {
  return objectKey(metadata);
}

/** `<kind>/<namespace>/<name>`, with a section `<kind>/<namespace>/<name>/<section>`, such as `Gateway/apps/web/https`. */
export function refKey({ kind, namespace, name, section }: ObjectRef): string {
  const key = `${kind}/${namespace}/${name}`;
  return section === undefined ? key : `${key}/${section}`;
}

/** The reference whose `refKey` this is; the caller knows which kinds it has filed. */
export function refOf<K extends string = string>(key: string): ObjectRef<K> {
  const [kind = "", namespace = "", name = "", section] = key.split("/");
  return { kind: kind as K, namespace, name, ...(section !== undefined && { section }) };
}
