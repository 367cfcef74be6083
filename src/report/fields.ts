import { type Fields, fieldsOf } from "../base/fields.ts";
import type { Origin } from "../base/origin.ts";
import { type KeyedRoute, routeName } from "../trace/route-names.ts";

/** When the request began, as its events have it: ISO 8601 UTC; empty if it could not be read. */
export function startTimeOf(events: readonly Fields[]): string {
  const states = events.map(({ message }) => fieldsOf(fieldsOf(message).requestState));
  const { startTime } = fieldsOf(states.find(({ request }) => request !== undefined)?.request);
  return typeof startTime === "string" && !Number.isNaN(Date.parse(startTime)) ? new Date(startTime).toISOString() : "";
}

/** One evaluated route: whether it matched, and why it won or lost. */
export interface CandidateLine {
  readonly name: string;
  readonly matched: boolean;
  readonly reason: string;
  /** The rule of precedence by which it lost; empty if it did not match, or won. */
  readonly because: string;
}

/** The view is drawn at every key, and shortening the names of thousands of routes takes a while. */
const known = new WeakMap<Fields, readonly CandidateLine[]>();

/** The candidates of a `routeSelection` message in its order, with the names of their routes. */
export function candidatesOf(message: Fields): readonly CandidateLine[] {
  const found = known.get(message) ?? readCandidates(message);
  known.set(message, found);
  return found;
}

function readCandidates(message: Fields): CandidateLine[] {
  const candidates = Array.isArray(message.candidates) ? message.candidates.map(fieldsOf) : [];
  const keys = routeKeys(message);
  return candidates.map((candidate) => {
    const { matched, reason, because } = candidate;
    const rule = typeof because === "string" ? because : "";
    return {
      name: routeName(routeOf(candidate), keys),
      matched: matched === true,
      reason: rule === "" ? (typeof reason === "string" ? reason : "") : `precedence: ${rule}`,
      because: rule,
    };
  });
}

/** The name of the route that a `routeSelection` message selected; empty if no route matched. */
export function selectedName(message: Fields): string {
  const { selectedRoute, candidates } = message;
  if (typeof selectedRoute !== "string") return "";
  const all = Array.isArray(candidates) ? candidates.map(fieldsOf) : [];
  const selected = all.find(({ route }) => route === selectedRoute) ?? { route: selectedRoute };
  return routeName(routeOf(selected), routeKeys(message));
}

function routeOf({ route, rule, origin }: Fields): KeyedRoute {
  const { object, path } = fieldsOf(origin);
  const { kind } = fieldsOf(object);
  return {
    route: String(route ?? ""),
    ...(typeof rule === "string" && { rule }),
    ...(typeof kind === "string" && Array.isArray(path) && { origin: origin as Origin }),
  };
}

/** How many routes a `routeSelection` message is about. */
export function evaluatedCount(message: Fields): number {
  return routeKeys(message).length + (typeof message.omittedRoutes === "number" ? message.omittedRoutes : 0);
}

function routeKeys(message: Fields): string[] {
  return Array.isArray(message.evaluatedRoutes) ? message.evaluatedRoutes.map(String) : [];
}
