import type { Ir } from "../ir/ir.ts";
import { groupOwner, type RouteSlice } from "../proxy/compile-ir.ts";
import type { Ports } from "../proxy/data-plane.ts";
import type { ConfigStep } from "./messages.ts";

/** Routes of one step: small enough that requests do not wait for their compilation (about 1 ms). */
const SLICE = 100;

/** What a worker does, in this order, to build a configuration that `commit` then puts in force. */
export function preparation(generation: number, ir: Ir, ports: Ports): readonly ConfigStep[] {
  const steps: ConfigStep[] = [{ type: "begin", generation, ir: withoutRoutes(ir) }];
  for (const bind of ir.binds)
    for (const listener of bind.listeners) steps.push(...slices(listener.key, listener.routes));
  for (const group of ir.routeGroups) steps.push(...slices(groupOwner(group.name), group.routes));
  steps.push({ type: "prepare", ports });
  return steps;
}

function slices(owner: string, routes: RouteSlice["routes"]): ConfigStep[] {
  const steps: ConfigStep[] = [];
  for (let at = 0; at < routes.length; at += SLICE)
    steps.push({ type: "routes", slice: { owner, routes: routes.slice(at, at + SLICE) } });
  return steps;
}

function withoutRoutes(ir: Ir): Ir {
  return {
    ...ir,
    targeted: [],
    binds: ir.binds.map((bind) => ({
      ...bind,
      listeners: bind.listeners.map((listener) => ({ ...listener, routes: [] })),
    })),
    routeGroups: ir.routeGroups.map((group) => ({ ...group, routes: [] })),
  };
}
