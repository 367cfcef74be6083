import { type RunningServer, startHttpServer } from "../admin/server/http-server.ts";
import { textReply } from "../admin/server/reply.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";

/**
 * Starts the server for probes: `/healthz` while the process runs, `/readyz` once it has synced (reference 6.5).
 * @param problem why the controller is not ready; undefined: it is
 * @throws Error when the address cannot be used
 */
export function startHealthServer(
  problem: () => string | undefined,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
): Promise<RunningServer> {
  return startHttpServer(address, {
    name: "health",
    setting: "the health port",
    log,
    own,
    handle: ({ url = "", method }) => {
      const [path] = url.split("?", 1);
      if (path !== "/healthz" && path !== "/readyz") return textReply(404, "");
      if (method !== "GET") return textReply(405, "", { allow: "GET" });
      const found = path === "/readyz" ? problem() : undefined;
      return found === undefined ? textReply(200, "ok\n") : textReply(500, `${found}\n`);
    },
  });
}
