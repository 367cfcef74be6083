import type { RouteGroup } from "../../ir/ir.ts";

/** Route groups that delegate in a circle, each as the names along it (`a`, `b`, `a`); every circle once. */
export function findCycles(groups: readonly RouteGroup[]): string[][] {
  const edges = new Map(
    groups.map((group) => [
      group.name,
      new Set(
        group.routes.flatMap((route) =>
          route.backends.flatMap(({ target }) => (target.type === "routeGroup" ? [target.name] : [])),
        ),
      ),
    ]),
  );
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (name: string, trail: readonly string[]): void => {
    const at = trail.indexOf(name);
    if (at !== -1) {
      cycles.push([...trail.slice(at), name]);
      return;
    }
    if (done.has(name)) return;
    for (const next of edges.get(name) ?? []) visit(next, [...trail, name]);
    done.add(name);
  };
  for (const group of groups) visit(group.name, []);
  return cycles;
}
