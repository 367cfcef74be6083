import { type Fields, fieldsOf } from "../base/fields.ts";

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

/** The candidates of a `routeSelection` message in its order, with short names. */
export function candidatesOf(message: Fields): readonly CandidateLine[] {
  const found = known.get(message) ?? readCandidates(message);
  known.set(message, found);
  return found;
}

function readCandidates(message: Fields): CandidateLine[] {
  const candidates = Array.isArray(message.candidates) ? message.candidates.map(fieldsOf) : [];
  const keys = routeKeys(message);
  const winner = typeof message.selectedRoute === "string" ? message.selectedRoute : "";
  const winnerName = selectedName(message);
  return candidates.map(({ route, matched, reason, because }) => ({
    name: shortRoute(String(route ?? ""), keys),
    matched: matched === true,
    // `precedence: <key> is more specific (longer path)` names the winner.
    reason: typeof reason !== "string" ? "" : winner === "" ? reason : reason.replaceAll(winner, () => winnerName),
    because: typeof because === "string" ? because : "",
  }));
}

/** The short name of the route that a `routeSelection` message selected; empty if no route matched. */
export function selectedName(message: Fields): string {
  const { selectedRoute } = message;
  return typeof selectedRoute === "string" ? shortRoute(selectedRoute, routeKeys(message)) : "";
}

/** How many routes a `routeSelection` message is about. */
export function evaluatedCount(message: Fields): number {
  return routeKeys(message).length + (typeof message.omittedRoutes === "number" ? message.omittedRoutes : 0);
}

function routeKeys(message: Fields): string[] {
  return Array.isArray(message.evaluatedRoutes) ? message.evaluatedRoutes.map(String) : [];
}
