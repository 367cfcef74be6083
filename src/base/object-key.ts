/** Names of routes, Gateways and other objects, as the texts that logs, metrics and maps know them by. */
export interface NamespacedName {
  readonly namespace: string;
  readonly name: string;
}

/** `<namespace>/<name>`, or `<name>` without a namespace: how objects of a known kind are filed and shown everywhere. */
export function objectKey({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

/** The parts of the `objectKey` of an object with a namespace. */
export function nameOfKey(key: string): NamespacedName {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
