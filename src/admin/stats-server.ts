import type { IncomingMessage } from "node:http";
import type { InheritedSockets } from "../base/inherited-sockets.ts";
import type { ListenAddress } from "../base/listen-address.ts";
import type { Logger } from "../base/log.ts";
import type { OwnSockets } from "../base/own-sockets.ts";
import { MEDIA_TYPES, type MetricsFormat } from "../telemetry/prometheus.ts";
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
  inherited?: InheritedSockets,
): Promise<RunningServer> {
  return startHttpServer(address, {
    name: "stats",
    setting: "statsAddr",
    log,
    own,
    inherited,
    handle: async (request) =>
      (await metricsReply(plane, request)) ?? textReply(404, "not found; the metrics are at /metrics\n"),
  });
}

/** The response to a request for metrics; undefined for other requests. */
export async function metricsReply(
  plane: Pick<AdminPlane, "metricsText">,
  { url = "", method, headers }: Pick<IncomingMessage, "url" | "method" | "headers">,
): Promise<Reply | undefined> {
  if (!PATHS.has(url.split("?", 1)[0] ?? "")) return undefined;
  if (method !== "GET") return textReply(405, "/metrics accepts GET only\n", { allow: "GET" });
  const format = formatFor(headers.accept ?? "");
  return { status: 200, type: MEDIA_TYPES[format], body: await plane.metricsText(format) };
}

/** OpenMetrics for clients that name it in `Accept`, unless they prefer plain text, as RFC 9110 12.5.1 weighs them. */
function formatFor(accept: string): MetricsFormat {
  const weights = { text: 0, openMetrics: 0 };
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const parameter = (name: string): string | undefined =>
      parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    const weight = Number(parameter("q") ?? 1);
    if (type === "text/plain") weights.text = Math.max(weights.text, weight);
    if (type === "application/openmetrics-text" && (parameter("version") ?? "1.0.0") === "1.0.0")
      weights.openMetrics = Math.max(weights.openMetrics, weight);
  }
  return weights.openMetrics > 0 && weights.openMetrics >= weights.text ? "openMetrics" : "text";
}
