import type { RouteGroup } from "../../ir/ir.ts";

/** Group → the groups that some of its requests may be delegated to. */
type Edges = ReadonlyMap<string, readonly string[]>;

/**
 * Route groups that delegate in a circle, each as the names along it (`a`, `b`, `a`). Of several circles that close at one
 * group only the first is reported: once it is fixed, the next one shows.
 */
export function findCycles(groups: readonly RouteGroup[]): string[][] {
  const edges = new Map(groups.map((group) => [group.name, delegates(group)]));
  const cycles = new Map<string, string[]>();
  const done = new Set<string>();
  for (const { name } of groups) if (!done.has(name)) walk(name, edges, done, cycles);
  return [...cycles.values()];
}

/** Depth first, without recursion: a chain of groups may be longer than the call stack. */
function walk(from: string, edges: Edges, done: Set<string>, cycles: Map<string, string[]>): void {
  const trail = [{ name: from, followed: 0 }];
  const onTrail = new Set([from]);
  for (let at = trail.at(-1); at !== undefined; at = trail.at(-1)) {
    const next = edges.get(at.name)?.[at.followed++];
    if (next === undefined) {
      trail.pop();
      onTrail.delete(at.name);
      done.add(at.name);
    } else if (onTrail.has(next)) {
      const names = trail.map(({ name }) => name);
      if (!cycles.has(next)) cycles.set(next, [...names.slice(names.indexOf(next)), next]);
    } else if (!done.has(next)) {
      trail.push({ name: next, followed: 0 });
      onTrail.add(next);
    }
  }
}

function delegates({ routes }: RouteGroup): string[] {
  const names = routes.flatMap(({ backends }) =>
    backends.flatMap(({ target, weight }) => (target.type === "routeGroup" && weight > 0 ? [target.name] : [])),
  );
  return [...new Set(names)];
}
