import { defineQuery } from "../graph.ts";
import type { RouteModel } from "./model.ts";

const NO_ROUTE: RouteModel = { parents: [], services: [] };

/** What a route makes of its parents; the key is `<kind>/<namespace>/<name>`. Routes are not translated yet. */
export const routeModel = defineQuery<RouteModel>("routeModel", () => NO_ROUTE);
