/** Where the view is: the part of the address behind `#`, so that each place has a link. */
import { signal } from "@preact/signals";

/** `#/requests?where=…`: the path, and its parameters. */
export interface Place {
  /** Such as `/requests`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The place that a hash names. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  return { path: path === "" ? "/" : path, query: new URLSearchParams(query) };
}

/** A link to a place; empty parameters are left out. `words`: parameters by name, or a list in which a name may be repeated. */
export function hashOf(
  path: string,
  words: Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[] = {},
): string {
  const pairs = Array.isArray(words) ? words : Object.entries(words);
  const query = new URLSearchParams(pairs.filter(([, value]) => value !== "")).toString();
  return query === "" ? `#${path}` : `#${path}?${query}`;
}

/** A link to what happened to a request: `id` is that of a record, a request or a trace. */
export function requestHash(id: string): string {
  return `#/r/${encodeURIComponent(id)}`;
}

/** A link to a route, by its key. */
export function routeHash(key: string): string {
  return `#/routes/${encodeURIComponent(key)}`;
}

/** The parameters of the address. What follows from them may not be shown yet, so a change of one must keep the others from here. */
export function queryNow(): URLSearchParams {
  return placeOf(location.hash).query;
}

/** The place that is shown. */
export const place = signal<Place>({ path: "/", query: new URLSearchParams() });

/** Shows what the address names, now and whenever it changes. */
export function followAddress(): void {
  const show = (): void => {
    place.value = placeOf(location.hash);
  };
  addEventListener("hashchange", show);
  show();
}
