import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { adminHeaders, dispatch } from "./admin-server.ts";
import type { AdminPlane } from "./plane/plane.ts";
import { Guard } from "./server/guard.ts";
import { type RunningServer, startHttpServer } from "./server/http-server.ts";
import { metricsReply } from "./stats-server.ts";

/**
 * Starts the server behind `internal` backends: the endpoints of the admin server and the metrics on a unix socket that only
 * this user may open. The route decides who may call, by its host names and policies; the guard against requests that a web page
 * forged applies here too.
 * @throws Error when the socket cannot be made
 */
export function startInternalServer(
  plane: AdminPlane,
  path: string,
  log: Logger,
  own: OwnSockets,
): Promise<RunningServer> {
  const address = { type: "unix", path } as const;
  const guard = new Guard(address, [], plane.permits.browserOrigins);
  return startHttpServer(address, {
    name: "internal",
    setting: "TMPDIR",
    ownRequests: true,
    log,
    own,
    // A kept connection could close while the next request is on its way, and the gateway must not replay a POST.
    headers: (request) => ({ ...adminHeaders(guard, request), connection: "close" }),
    handle: async (request, signal) =>
      guard.check(request) ?? (await metricsReply(plane, request)) ?? dispatch(plane, guard, request, signal),
  });
}
