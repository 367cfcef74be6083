import type { Logger } from "../base/log.ts";
import { adminHeaders, dispatch } from "./admin-server.ts";
import type { AdminPlane } from "./plane.ts";
import { Guard } from "./server/guard.ts";
import { type RunningServer, startHttpServer } from "./server/http-server.ts";
import { metricsReply } from "./stats-server.ts";

/**
 * Starts the server behind `internal` backends: the endpoints of the admin server and the metrics on a unix socket that only
 * this user may open. Who may call is up to the route, whose host names and policies come first; what only a browser that
 * was tricked would send is refused here as everywhere.
 * @throws Error when the socket cannot be made
 */
export function startInternalServer(plane: AdminPlane, path: string, log: Logger): Promise<RunningServer> {
  const address = { type: "unix", path } as const;
  const guard = new Guard(address, []);
  return startHttpServer(address, {
    name: "internal",
    setting: "TMPDIR",
    log,
    // A connection that was kept could close under the next request, which the gateway may not repeat when it is a POST.
    headers: (request) => ({ ...adminHeaders(request), connection: "close" }),
    handle: async (request, signal) =>
      guard.check(request) ?? (await metricsReply(plane, request)) ?? dispatch(plane, request, signal),
  });
}
