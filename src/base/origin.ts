import { formatPath, type Path } from "./paths.ts";

/** Where a listener, route, policy or rule of a configuration was written. */
export interface Origin {
  /** The Kubernetes object; absent: the configuration file. */
  readonly object?: ObjectName;
  /** The field in the file or object: names of fields and positions in lists, such as `["binds", 0, "port"]`. */
  readonly path: Path;
  /** Of the field in the file, where it is shown: found by parsing the file again. */
  readonly place?: { readonly file: string; readonly line: number; readonly column: number };
}

/** Names a Kubernetes object. */
export interface ObjectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** `gateway.yaml:31`; without a place `binds[0].listeners[0].routes[1]`, or `HTTPRoute shop/web spec.rules[1]`. */
export function formatOrigin({ object, path, place }: Origin): string {
  if (place !== undefined) return `${place.file}:${place.line}`;
  const field = formatPath(path);
  if (object === undefined) return field;
  return `${object.kind} ${object.namespace}/${object.name}${field === "" ? "" : ` ${field}`}`;
}

/** Where a value of a file is; undefined: it is not there any more. */
export type Locate = (path: Path) => Origin["place"];

/** The same with the place of its origin, if that is in a file. */
export function withPlace<T extends { readonly origin?: Origin | undefined }>(what: T, locate: Locate): T {
  const { origin } = what;
  const place = origin && locate(origin.path);
  return origin === undefined || place === undefined ? what : { ...what, origin: { ...origin, place } };
}
