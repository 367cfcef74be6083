/** Logins of routes that cannot work, because another route gets a request that belongs to them. */
import { isDeepStrictEqual } from "node:util";
import type { Oidc } from "../policies/oidc/schema.ts";
import { loginsIn } from "../policies/satisfy/logins.ts";
import type { HttpPlace, LintedRoute, NameOf, Place } from "./linted-route.ts";
import { nearest, type Unconditional, unconditionalPlaces } from "./places-by-path.ts";
import type { AnyRoute, RouteFinding } from "./route-findings.ts";

/** The paths of the gateway itself that a login needs, and the page after a logout. What other listeners serve is not known. */
export function logins(
  routes: readonly LintedRoute[],
  winners: ReadonlyMap<string, Place>,
  nameOf: NameOf,
): RouteFinding[] {
  const protecting = routes.filter(({ route }) => loginsOf(route).length > 0);
  if (protecting.length === 0) return [];
  const all = unconditionalPlaces(winners.values());
  return protecting.flatMap(({ route }) =>
    loginsOf(route).flatMap((oidc): RouteFinding[] => {
      const { hostname, pathname } = new URL(oidc.redirectURI);
      const { path, backChannelPath, redirectURI } = oidc.logout ?? {};
      const paths = [pathname, path, backChannelPath].filter((each) => each !== undefined);
      const unserved = paths.flatMap((each): RouteFinding[] => {
        const place = servedBy(all, hostname, each);
        if (place === undefined || loginsOf(place.route).some((other) => isSame(other, oidc))) return [];
        const related = [{ route: place.route, match: place.match, message: "has no such oidc" }];
        return [{ route, code: "unserved-login-path", found: [each, nameOf(place, route)], related }];
      });
      const page = redirectURI === undefined ? undefined : new URL(redirectURI);
      const place = page && servedBy(all, page.hostname, page.pathname);
      if (page === undefined || place === undefined || loginsOf(place.route).length === 0) return unserved;
      const other = place.route === route ? undefined : nameOf(place, route);
      const related = [{ route: place.route, match: place.match, message: "requires a login" }];
      return [...unserved, { route, code: "protected-logout-page", found: [page.pathname, other], related }];
    }),
  );
}

/** Undefined also where it is not known: the routes of a group have policies of their own. */
function servedBy(all: ReadonlyMap<string, Unconditional>, host: string, path: string): HttpPlace | undefined {
  const place = nearest(all, host, path);
  return place?.route.backends.some(({ target }) => target.type === "routeGroup") === true ? undefined : place;
}

function loginsOf(route: AnyRoute): readonly Oidc[] {
  return "policies" in route ? loginsIn(route.policies) : [];
}

/** Whether both are one login, so that each can complete what the other has begun. */
function isSame(one: Oidc, other: Oidc): boolean {
  const identity = ({ issuer, clientId, redirectURI, logout }: Oidc) => [issuer, clientId, redirectURI, logout];
  return isDeepStrictEqual(identity(one), identity(other));
}
