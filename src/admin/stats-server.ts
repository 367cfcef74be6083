import type { IncomingMessage } from "node:http";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { PROMETHEUS_CONTENT_TYPE } from "../telemetry/prometheus.ts";
import type { AdminPlane } from "./plane/plane.ts";
import { type RunningServer, startHttpServer } from "./server/http-server.ts";
import { type Reply, textReply } from "./server/reply.ts";

const PATHS = new Set(["/metrics", "/stats/prometheus"]);

/**
 * Starts the stats server (docs/metrics.md). Prometheus scrapes it from the network under any name, and it serves only counters,
 * so it checks neither Host nor Origin.
 * @throws Error when the address cannot be used
 */
export function startStatsServer(
  plane: Pick<AdminPlane, "metricsText">,
  address: ListenAddress,
  log: Logger,
  own: OwnSockets,
): Promise<RunningServer> {
  return startHttpServer(address, {
    name: "stats",
    setting: "statsAddr",
    log,
    own,
    handle: async (request) =>
      (await metricsReply(plane, request)) ?? textReply(404, "not found; the metrics are at /metrics\n"),
  });
}

/** The response to a request for metrics; undefined for other requests. */
export async function metricsReply(
  plane: Pick<AdminPlane, "metricsText">,
  { url = "", method }: Pick<IncomingMessage, "url" | "method">,
): Promise<Reply | undefined> {
  if (!PATHS.has(url.split("?", 1)[0] ?? "")) return undefined;
  if (method !== "GET") return textReply(405, "/metrics accepts GET only\n", { allow: "GET" });
  return { status: 200, type: PROMETHEUS_CONTENT_TYPE, body: await plane.metricsText() };
}
