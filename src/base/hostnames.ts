/**
 * Where the hostnames of a route and a listener overlap (Gateway API, HTTPRoute `spec.hostnames`): of two that overlap, the
 * more specific one. Hostnames are lower-case, `*.` means one or more labels, empty = any.
 */
export function intersectHostnames(listener: string, route: readonly string[]): readonly string[] | undefined {
  if (route.length === 0) return listener === "" ? [] : [listener];
  const both = route.flatMap((hostname) => {
    const narrower = narrowerOf(listener, hostname);
    return narrower === undefined ? [] : [narrower];
  });
  return both.length === 0 ? undefined : [...new Set(both)];
}

/** Whether a host can be one of both. */
export function overlap(one: string, other: string): boolean {
  return narrowerOf(one, other) !== undefined;
}

/** The more specific of two overlapping hostnames; undefined: they do not overlap. */
function narrowerOf(one: string, other: string): string | undefined {
  if (covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

/** Whether every host of `narrow` is one of `wide`. */
export function covers(wide: string, narrow: string): boolean {
  if (wide === "" || wide === narrow) return true;
  return wide.startsWith("*.") && narrow.endsWith(wide.slice(1));
}
