import type { BackendView, EndpointView, ProbeAnswer, Shortened } from "../../../admin/plane/backends.ts";
import { counted } from "../../../base/counted.ts";
import { foundText, NOTHING_PROBED, notProbed, sentText, stateText, whyText } from "../../../report/health.ts";
import { durationText } from "../../../report/recorded.ts";
import { DUMP_OUTPUT_OPTION, table } from "../../dump/dump.ts";
import { printMerged } from "../../merge/print-merged.ts";
import { adminResult } from "../../proxy/admin.ts";
import { RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { openProxies } from "../open-proxies.ts";

export const backends = defineCommand({
  name: "backends",
  summary: "Show the health, load and connections of the endpoints behind each backend",
  description: [
    "STATE is healthy, evicted, unhealthy, unresolved, notReady, pending or unused; those that get no requests come first in each backend. In a cluster, load and connections are sums over all pods, and STATE is the worst that any pod sees, with the names of the pods that see it. See docs/backends.md.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    find: { type: "text", value: "text", summary: "Only backends with this text in their key, name or addresses" },
    failing: { type: "switch", summary: "Only backends with an endpoint that gets no requests" },
    probe: {
      type: "text",
      value: "key",
      summary:
        "Probe the endpoints of the backend with this key once: by its active health check, or with a connection",
    },
    output: DUMP_OUTPUT_OPTION,
  },
  examples: [
    { does: "Which endpoints get no requests, and why", run: "backends --failing" },
    { does: "Whether the endpoints of one backend respond now", run: "backends --probe /api" },
    { does: "Everything about one address, as JSON", run: "backends --find 10.0.0.7 -o json" },
  ],
  async run(invocation, context) {
    const { find, failing, probe, output } = invocation.options;
    await using proxies = await openProxies(invocation, context);
    const { signal } = context;
    if (probe !== undefined)
      return await printMerged(proxies, context, {
        endpoint: "/probe/",
        ask: (proxy) => adminResult(proxy, proxy.client.probe(probe, { signal })),
        output,
        table: probeTable,
      });
    return await printMerged(proxies, context, {
      endpoint: "/backends",
      ask: (proxy) => adminResult(proxy, proxy.client.backends({ find, failing }, { signal })),
      output,
      table: ({ backends }) => backendTable(backends),
    });
  },
});

/** A line for each endpoint, and one for each backend without any; below them how many are not shown. */
function backendTable({ total, shown }: Shortened<BackendView>): string {
  const header = ["BACKEND", "ENDPOINT", "STATE", "HEALTH", "LATENCY", "ACTIVE", "REQUESTS", "CONNECTIONS", "WHY"];
  const rows = shown.flatMap(({ name, kind, endpoints }) =>
    endpoints.total === 0
      ? [[name, kind, "", "", "", "", "", "", ""]]
      : endpoints.shown.map((endpoint) => [name, ...endpointCells(endpoint)]),
  );
  const more = shown.flatMap(({ key, endpoints }) => {
    const left = endpoints.total - endpoints.shown.length;
    return left === 0 ? [] : [`${counted(left, "more endpoint")} of ${key}\n`];
  });
  const others = total - shown.length;
  return `${table(header, rows)}${more.join("")}${others === 0 ? "" : `${counted(others, "more backend")}\n`}`;
}

/** A line for each endpoint that was probed; below them how many were not. */
function probeTable({ endpoints, probes }: ProbeAnswer): string {
  if (probes.length === 0) return `${NOTHING_PROBED}\n`;
  const ofReplicas = probes.some(({ pod }) => pod !== undefined);
  const rows = probes.map((probe) => [
    ...(ofReplicas ? [probe.pod ?? ""] : []),
    probe.address,
    probe.healthy ? "healthy" : "unhealthy",
    durationText(probe.duration),
    sentText(probe.sent),
    foundText(probe),
  ]);
  const others = notProbed(endpoints, probes);
  const rest = others > 0 ? `not probed: ${counted(others, "more endpoint")}\n` : "";
  return `${table([...(ofReplicas ? ["POD"] : []), "ENDPOINT", "STATE", "TIME", "SENT", "RESULT"], rows)}${rest}`;
}

function endpointCells(endpoint: EndpointView): string[] {
  const { addresses, health, latency, active, requests, pool } = endpoint;
  return [
    addresses.join(","),
    stateText(endpoint),
    health.toFixed(2),
    latency === 0 ? "" : durationText(latency * 1000),
    String(active),
    String(requests),
    pool === undefined ? "" : String(pool.active + pool.idle + pool.connecting),
    whyText(endpoint),
  ];
}
