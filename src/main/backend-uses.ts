import type { Origin } from "../base/origin.ts";
import type { Backend, Ir, Route, RouteBackend, TcpRoute } from "../ir/ir.ts";
import { originOfBackend } from "../ir/origins.ts";

/** A route that sends requests to a backend. `origin`: of the entry in the route. */
export interface BackendUse extends RouteBackend {
  readonly route: Pick<Route, "key" | "name" | "namespace" | "ruleName">;
  readonly origin?: Origin | undefined;
}

/** A backend, and who sends requests to it. */
export interface UsedBackend {
  readonly backend: Backend | BackendUse;
  /** Routes refer to it by its name; otherwise it is written in a route. */
  readonly isNamed: boolean;
  readonly uses: readonly BackendUse[];
}

/** All named backends, and the targets that are written in routes, by their keys. */
export function backendsOf(ir: Ir): UsedBackend[] {
  const listeners = ir.binds.flatMap((bind) => bind.listeners);
  const routes = [...listeners, ...ir.routeGroups].flatMap((owner): readonly (Route | TcpRoute)[] => owner.routes);
  routes.push(...listeners.flatMap(({ tcpRoutes }) => tcpRoutes));
  const uses = routes.flatMap((route) =>
    route.backends.map((backend, i) => ({ ...backend, route, origin: originOfBackend(route.origin, i, backend.at) })),
  );
  const byName = Map.groupBy(uses, ({ key }) => key);
  const named = ir.backends.map((backend) => ({ backend, isNamed: true, uses: byName.get(backend.key) ?? [] }));
  for (const { key } of ir.backends) byName.delete(key);
  const written = [...byName.values()].flatMap((same) =>
    same.map((backend) => ({ backend, isNamed: false, uses: same })),
  );
  return [...named, ...written].sort((a, b) =>
    a.backend.key < b.backend.key ? -1 : a.backend.key > b.backend.key ? 1 : 0,
  );
}
