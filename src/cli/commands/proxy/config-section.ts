import { type Command, defineCommand, type Example } from "../../define-command.ts";
import { loadDump } from "../../dump/load.ts";
import { OUTPUT_OPTION, print } from "../../dump/output.ts";
import { type SectionName, sectionItems, sectionTable } from "../../dump/summary.ts";
import { fileOption, RESOURCE, requireTarget, TARGET_OPTIONS } from "./target.ts";

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
    options: {
      ...TARGET_OPTIONS,
      file: fileOption("Read a dump saved from /config_dump (- reads standard input)"),
      output: OUTPUT_OPTION,
    },
    examples: [example, { does: "For a program", run: `proxy config ${named.name} -o json` }],
    async run(invocation, context) {
      requireTarget(invocation);
      const { file, output, "proxy-admin-port": port } = invocation.options;
      const dump = await loadDump(file, port, context);
      await print(sectionItems(dump, named.name), output, context, () => sectionTable(dump, named.name));
    },
  });
}

/** How the column MATCHES reads. */
export const MATCHES_HELP =
  "In the column MATCHES a path that ends in * is a prefix, = begins an exact path and ~ a regular expression.";

export const configRoutes = sectionCommand({
  name: "routes",
  aliases: ["r"],
  summary: "List routes with their hostnames, matches, backends and policies",
  description: [MATCHES_HELP],
  example: { does: "Which route takes /api?", run: "proxy config routes" },
});

export const configListeners = sectionCommand({
  name: "listeners",
  aliases: ["l"],
  summary: "List listeners with their gateway, protocol, hostname and number of routes",
  example: { does: "What does the proxy listen for?", run: "proxy config listeners" },
});

export const configPolicies = sectionCommand({
  name: "policies",
  aliases: ["p"],
  summary: "List policies that target gateways, listeners, routes and backends",
  description: ["Policies that stand inside a route are in the column POLICIES of the routes."],
  example: { does: "Which policies are attached from outside?", run: "proxy config policies" },
});
