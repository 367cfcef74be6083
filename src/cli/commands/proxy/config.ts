import { DUMP_OUTPUT_OPTION, print, readDump, table } from "../../dump/dump.ts";
import { type EndpointRow, endpointRows } from "../../dump/endpoints.ts";
import { type SectionName, sectionItems, sectionTable, summarize } from "../../dump/summary.ts";
import { adminResult } from "../../proxy/admin.ts";
import { chooseTarget, fileOption, RESOURCE, TARGET_OPTIONS, type TargetWords } from "../../proxy/proxies.ts";
import type { Context } from "../../runner/context.ts";
import { type Command, defineCommand, type Example, type OptionSpecs } from "../../runner/define-command.ts";
import { openProxies } from "../open-proxies.ts";

/** Explains the column MATCHES. */
const MATCHES_HELP =
  "In the MATCHES column, a path that ends in * is a prefix; = marks an exact path and ~ a regular expression.";

const DUMP_OPTIONS = {
  ...TARGET_OPTIONS,
  file: fileOption("Read a dump saved from /config_dump (- reads standard input)"),
  output: DUMP_OUTPUT_OPTION,
} as const satisfies OptionSpecs;

export const configAll = defineCommand({
  name: "all",
  summary: "Show binds, listeners, routes, backends, services and policies",
  description: [`The tables are a summary; -o json and -o yaml print the whole dump. ${MATCHES_HELP}`],
  argument: RESOURCE,
  options: DUMP_OPTIONS,
  examples: [
    { does: "The configuration of the proxy on this machine", run: "proxy config all" },
    { does: "The whole dump as YAML", run: "proxy config all -o yaml" },
    { does: "A saved dump", run: "proxy config all --file dump.json" },
  ],
  async run(invocation, context) {
    const dump = await loadDump(invocation, context);
    await print(dump, invocation.options.output, context, () => summarize(dump));
  },
});

interface SectionCommand {
  readonly name: SectionName;
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly description?: readonly string[];
  readonly example: Example;
}

/** A command that shows one table of the configuration dump. */
function sectionCommand({ example, ...named }: SectionCommand): Command {
  return defineCommand({
    ...named,
    argument: RESOURCE,
    options: DUMP_OPTIONS,
    examples: [example, { does: "As JSON, for scripts", run: `proxy config ${named.name} -o json` }],
    async run(invocation, context) {
      const dump = await loadDump(invocation, context);
      await print(sectionItems(dump, named.name), invocation.options.output, context, () =>
        sectionTable(dump, named.name),
      );
    },
  });
}

export const configRoutes = sectionCommand({
  name: "routes",
  aliases: ["r"],
  summary: "List routes with their hostnames, matches, backends and policies",
  description: [MATCHES_HELP],
  example: { does: "Which route matches /api?", run: "proxy config routes" },
});

export const configListeners = sectionCommand({
  name: "listeners",
  aliases: ["l"],
  summary: "List listeners with their gateway, protocol, hostname and number of routes",
  example: { does: "Which listeners does the proxy have?", run: "proxy config listeners" },
});

export const configPolicies = sectionCommand({
  name: "policies",
  aliases: ["p"],
  summary: "List policies that target gateways, listeners, routes and backends",
  description: ["Policies inside a route are in the POLICIES column of tgctl proxy config routes."],
  example: { does: "Which policies are attached by target?", run: "proxy config policies" },
});

export const configBackends = defineCommand({
  name: "backends",
  aliases: ["b", "be"],
  summary: "List backends with the health, requests and latency of their endpoints",
  description: [
    "HEALTH is 1.00 for an endpoint whose requests all succeeded, Evict (3.3s) for one that is evicted for that long, unhealthy for one whose active health checks fail; REASON says why. LATENCY is a moving average.",
  ],
  argument: RESOURCE,
  options: {
    ...DUMP_OPTIONS,
    all: { type: "switch", summary: "Also show endpoints that are used but had no requests" },
  },
  examples: [
    { does: "Which endpoints get requests, and are they healthy?", run: "proxy config backends" },
    { does: "All of them as JSON", run: "proxy config backends --all -o json" },
  ],
  async run(invocation, context) {
    const { output, all } = invocation.options;
    const rows = endpointRows(await loadDump(invocation, context));
    const shown = all ? rows : rows.filter((row) => row.requests > 0 || row.rejected);
    await print(shown, output, context, () => endpointTable(shown, rows.length - shown.length));
  },
});

/** The configuration dump of `--file` (JSON or YAML, `-` is standard input), or of the proxy that the command line names. */
async function loadDump(words: TargetWords, context: Context): Promise<unknown> {
  const { file } = words.options;
  chooseTarget(words, context.env);
  if (file !== undefined) return readDump(file, context);
  await using proxies = await openProxies(words, context);
  // Replicas have different health and counters.
  const proxy = await proxies.first(true);
  return await adminResult(proxy, proxy.client.configDump({ signal: context.signal }));
}

const HEADER = ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY"];

function endpointTable(rows: readonly EndpointRow[], hidden: number): string {
  const reasons = rows.some((row) => row.reason !== "");
  const lines = table(
    reasons ? [...HEADER, "REASON"] : HEADER,
    rows.map((row) => [
      row.type,
      row.name,
      row.namespace,
      row.endpoint,
      row.health,
      String(row.requests),
      row.requests === 0 ? "" : `${row.latencyMs.toFixed(2)}ms`,
      ...(reasons ? [row.reason] : []),
    ]),
  );
  if (hidden === 0) return lines;
  return `${lines}(${hidden} without requests hidden; --all shows them)\n`;
}
