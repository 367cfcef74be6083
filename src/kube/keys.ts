/** References to objects of the cluster, as values and as texts by which maps file them. Only this file takes the texts apart. */
import type { KubeObject } from "./objects.ts";

interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/** An object, or a section of it: a listener of a Gateway, a rule of a route, a port (its number) of a Service. */
export interface ObjectRef<K extends string = string> extends NamespacedName {
  readonly kind: K;
  readonly section?: string | undefined;
}

/** `<namespace>/<name>`, or `<name>` without a namespace: how objects of a known kind are filed everywhere. */
export function objectKey({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

export function keyOfObject({ metadata }: KubeObject): string {
  return objectKey(metadata);
}

/** The parts of the `objectKey` of an object with a namespace. */
export function nameOfKey(key: string): NamespacedName {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
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
