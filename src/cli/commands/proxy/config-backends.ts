import { defineCommand } from "../../define-command.ts";
import { type EndpointRow, endpointRows } from "../../dump/endpoints.ts";
import { loadDump } from "../../dump/load.ts";
import { OUTPUT_OPTION, print } from "../../dump/output.ts";
import { table } from "../../dump/table.ts";
import { fileOption, RESOURCE, requireTarget, TARGET_OPTIONS } from "./target.ts";

export const configBackends = defineCommand({
  name: "backends",
  aliases: ["b", "be"],
  summary: "List backends with the health, requests and latency of their endpoints",
  description: [
    "HEALTH is 1.00 for an endpoint whose requests all succeeded, Evict (3.3s) for one that gets no requests for that long. LATENCY is a moving average.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    file: fileOption("Read a dump saved from /config_dump (- reads standard input)"),
    output: OUTPUT_OPTION,
    all: { type: "switch", summary: "Also show endpoints that got no request yet" },
  },
  examples: [
    { does: "Which endpoints get requests, and how do they do?", run: "proxy config backends" },
    { does: "All of them, for a program", run: "proxy config backends --all -o json" },
  ],
  async run(invocation, context) {
    requireTarget(invocation);
    const { file, output, all, "proxy-admin-port": port } = invocation.options;
    const rows = endpointRows(await loadDump(file, port, context));
    const shown = all ? rows : rows.filter((row) => row.requests > 0);
    await print(shown, output, context, () => endpointTable(shown, rows.length - shown.length));
  },
});

const HEADER = ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY"];

function endpointTable(rows: readonly EndpointRow[], hidden: number): string {
  const lines = table(
    HEADER,
    rows.map((row) => [
      row.type,
      row.name,
      row.namespace,
      row.endpoint,
      row.health,
      String(row.requests),
      row.requests === 0 ? "" : `${row.latencyMs.toFixed(2)}ms`,
    ]),
  );
  if (rows.length > 0 || hidden === 0) return lines;
  return `${lines}(${hidden} without requests hidden; --all shows them)\n`;
}
