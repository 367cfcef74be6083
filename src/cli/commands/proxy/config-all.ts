import { defineCommand } from "../../define-command.ts";
import { loadDump } from "../../dump/load.ts";
import { OUTPUT_OPTION, print } from "../../dump/output.ts";
import { summarize } from "../../dump/summary.ts";
import { MATCHES_HELP } from "./config-section.ts";
import { fileOption, RESOURCE, requireTarget, TARGET_OPTIONS } from "./target.ts";

export const configAll = defineCommand({
  name: "all",
  summary: "Show binds, listeners, routes, backends, services and policies",
  description: [`The tables are a summary; -o json and -o yaml print the whole dump. ${MATCHES_HELP}`],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    file: fileOption("Read a dump saved from /config_dump (- reads standard input)"),
    output: OUTPUT_OPTION,
  },
  examples: [
    { does: "What does the proxy on this machine run?", run: "proxy config all" },
    { does: "The whole dump as YAML", run: "proxy config all -o yaml" },
    { does: "A dump saved elsewhere", run: "proxy config all --file dump.json" },
  ],
  async run(invocation, context) {
    requireTarget(invocation);
    const { file, output, "proxy-admin-port": port } = invocation.options;
    const dump = await loadDump(file, port, context);
    await print(dump, output, context, () => summarize(dump));
  },
});
