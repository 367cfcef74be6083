import type { InheritedSockets } from "../base/inherited-sockets.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { LogLevel } from "../base/log-filter.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import type { AdminPlane } from "./plane/plane.ts";
import { type RunningServer, startHttpServer } from "./server/http-server.ts";
import { textReply } from "./server/reply.ts";

/**
 * Starts the readiness server: `GET /healthz/ready`, and `GET /healthz/live`, which responds 200 as long as the main thread
 * does (docs/production.md#probes). Readiness responds with 503 from the beginning of a shutdown, so load balancers that probe it
 * stop sending requests while they are still served.
 * @throws Error when the address cannot be used
 */
export function startReadinessServer(
  plane: Pick<AdminPlane, "pending" | "draining">,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
  inherited?: InheritedSockets,
): Promise<RunningServer> {
  let failures = 0;
  return startHttpServer(address, {
    name: "readiness",
    setting: "readinessAddr",
    log,
    own,
    inherited,
    proxyHeaders: true,
    handle: ({ url = "", method }) => {
      const [path] = url.split("?", 1);
      if (path !== "/healthz/ready" && path !== "/healthz/live") return textReply(404, "");
      if (method !== "GET") return textReply(405, "", { allow: "GET" });
      if (path === "/healthz/live") return textReply(200, "alive\n");
      if (plane.draining()) return textReply(503, "draining\n");
      const pending = plane.pending();
      if (pending.length === 0) {
        failures = 0;
        return textReply(200, "ready\n");
      }
      failures++;
      const message = `not ready, pending: ${pending.join(", ")}`;
      log.log(severity(failures), message, { probe: failures });
      return textReply(500, `${message}\n`);
    },
  });
}

/** Failed probes are expected during the start, so their severity rises with their number. */
function severity(failures: number): LogLevel {
  if (failures <= 5) return "debug";
  return failures <= 30 ? "info" : "warn";
}
