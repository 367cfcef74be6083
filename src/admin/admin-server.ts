import type { IncomingMessage } from "node:http";
import type { InheritedSockets } from "../base/inherited-sockets.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { AdminBadRequest, type AdminPlane } from "./plane/plane.ts";
import { ADMIN_ROUTES } from "./routes/all.ts";
import type { AdminMethod, AdminRoute } from "./routes/route.ts";
import { Guard } from "./server/guard.ts";
import { type RunningServer, startHttpServer } from "./server/http-server.ts";
import { type PlainReply, type Reply, textReply } from "./server/reply.ts";

/** Bytes. An endpoint that reads no body drops one up to this size; a larger one gets 413. */
const MAX_DROPPED = 64 * 1024;

type AdminRoutes<Plane> = ReadonlyMap<string, AdminRoute<Plane>>;

/** Routes by their path. */
export function routesByPath<Plane>(routes: readonly AdminRoute<Plane>[]): AdminRoutes<Plane> {
  return new Map(routes.map((route) => [route.path, route]));
}

const ROUTES = routesByPath(ADMIN_ROUTES);

/**
 * Starts the admin server (docs/production.md#ports).
 * @param allowedHosts host names, besides localhost, by which it may be called
 * @throws Error when the address cannot be used
 */
export function startAdminServer(
  plane: AdminPlane,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
  inherited?: InheritedSockets,
  allowedHosts: readonly string[] = [],
): Promise<RunningServer> {
  const guard = new Guard(address, allowedHosts, plane.permits.browserOrigins);
  return startHttpServer(address, {
    name: "admin",
    setting: "adminAddr",
    log,
    own,
    inherited,
    headers: (request) => adminHeaders(guard, request),
    handle: async (request, signal) => {
      const reply = guard.check(request) ?? (await dispatch(plane, guard, request, signal));
      // Once it is sent.
      setImmediate(() => plane.answered());
      return reply;
    },
  });
}

/** Headers of every response: browsers must not sniff its type, cache it, or let other sites embed it. */
export function adminHeaders(guard: Guard, request: IncomingMessage): Readonly<Record<string, string>> {
  return {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    ...guard.corsHeaders(request),
  };
}

/** Answers a request that has passed this guard. What it throws becomes an error response. */
export function dispatch(
  plane: AdminPlane,
  guard: Guard,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Reply> {
  return dispatchTo(ROUTES, plane, guard, request, signal);
}

/** The same for other routes. */
export async function dispatchTo<Plane>(
  routes: AdminRoutes<Plane>,
  plane: Plane,
  guard: Guard,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Reply> {
  const [path = "", query = ""] = split(request.url ?? "");
  const cut = path.lastIndexOf("/") + 1;
  const named = routes.get(path);
  const route = named ?? (cut > 1 && cut < path.length ? routes.get(path.slice(0, cut)) : undefined);
  if (route === undefined) return textReply(404, `no such endpoint: ${path}; GET / lists all\n`);
  if (request.method === "OPTIONS" && "access-control-allow-origin" in guard.corsHeaders(request))
    return textReply(204, "");
  const method = route.methods.find((known) => known === request.method);
  if (method === undefined) return route.otherMethod ?? methodNotAllowed(path, route.methods);
  const refused = method === "GET" || route.onlyReads ? undefined : guard.refuseChange(request);
  if (refused !== undefined) return refused;
  const body = await readBody(request, route.maxBody);
  if (!Buffer.isBuffer(body)) return body;
  const parameters = new URLSearchParams(query);
  const rest = named === undefined ? decoded(path.slice(cut)) : "";
  const { headers } = request;
  const pageToken = (): string | undefined => guard.pageToken(request);
  return (
    unknownParameter(route, parameters) ??
    route.handle({ plane, method, rest, query: parameters, headers, pageToken, body, signal })
  );
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new AdminBadRequest(`the path has an invalid escape: ${segment}`);
  }
}

/** A misspelled parameter must not silently do something else: `?levl=debug` would only show the level. */
function unknownParameter<Plane>(
  { path, parameters = [] }: AdminRoute<Plane>,
  query: URLSearchParams,
): PlainReply | undefined {
  if (parameters === "any") return undefined;
  const unknown = [...query.keys()].find((name) => !parameters.includes(name));
  if (unknown === undefined) return undefined;
  const known = parameters.length === 0 ? "no query parameters" : `the query parameters ${parameters.join(", ")}`;
  return textReply(400, `unknown query parameter ${JSON.stringify(unknown)}: ${path} takes ${known}\n`);
}

function methodNotAllowed(path: string, methods: readonly AdminMethod[]): PlainReply {
  return textReply(405, `${path} takes ${methods.join(" or ")}\n`, { allow: methods.join(", ") });
}

/** Path and query. Not by the URL class, which reads `//host` as an authority. */
function split(target: string): [string, string] {
  const mark = target.indexOf("?");
  return mark < 0 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)];
}

/** The body if the endpoint reads one, or the response to one that is too long. */
async function readBody(request: IncomingMessage, max = 0): Promise<Buffer | PlainReply> {
  const chunks: Buffer[] = [];
  const most = max === 0 ? MAX_DROPPED : max;
  let size = 0;
  // Leaving the loop early must not destroy the connection, because the response still has to be sent on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > most) {
      const why = max === 0 ? "this endpoint takes no body" : `the body is longer than ${max} bytes`;
      return textReply(413, `${why}\n`, { connection: "close" });
    }
    if (max > 0) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
