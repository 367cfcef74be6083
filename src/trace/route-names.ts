/** Names of routes for people; their keys are longer. */
import { formatOrigin, type Origin } from "../base/origin.ts";

/** A route in an event. */
export interface KeyedRoute {
  /** Its key. */
  readonly route: string;
  /** The name of the rule that it is made from. */
  readonly rule?: string;
  readonly origin?: Origin;
}

/**
 * The name of a route. In Kubernetes: its object and rule, such as `HTTPRoute shop/web rules[1]` or, if the rule has a name,
 * `HTTPRoute shop/web rule cart`. In a file: the shortest end of its key that is unique among `keys`.
 */
export function routeName({ route, rule, origin }: KeyedRoute, keys: readonly string[]): string {
  if (origin?.object === undefined) return shortRoute(route, keys);
  const { object, path } = origin;
  if (rule !== undefined) return `${formatOrigin({ object, path: [] })} rule ${rule}`;
  return formatOrigin({ object, path: path[0] === "spec" ? path.slice(1) : path });
}

/**
 * A route key as short as it can be among other keys: its last segment, or as many as make it unique.
 * `default/default/bind/3000/listener0/default/api` is `api`.
 */
export function shortRoute(key: string, others: readonly string[] = []): string {
  const segments = key.split("/");
  for (let count = 1; count < segments.length; count++) {
    const short = segments.slice(-count).join("/");
    if (short !== "" && !others.some((other) => other !== key && `/${other}`.endsWith(`/${short}`))) return short;
  }
  return key;
}

/** Whether `name` is that of a route: `<namespace>/<name>`, which is its label in metrics and records, or only the name. */
export function isCalled(label: string, name: string): boolean {
  return label === name || label.endsWith(`/${name}`);
}
