import { counted } from "../../base/counted.ts";
import { print } from "../dump/dump.ts";
import { CLUSTER_OPTIONS } from "../proxy/proxies.ts";
import { write } from "../runner/context.ts";
import { defineCommand } from "../runner/define-command.ts";
import { OUTPUT_OPTION } from "../runner/output-option.ts";

export const check = defineCommand({
  name: "check",
  summary: "Print what is wrong with a Gateway in Kubernetes, and with its routes, policies and backends",
  description: [
    "Reads the conditions that the controller has written: errors, such as a backend that does not exist, and warnings about what is valid and most likely not intended, such as a route that is never used. Exits with 1 if there are errors. A file is checked by tracegate check -f FILE.",
  ],
  argument: { name: "gateway", summary: "gateway/<name>", required: true },
  options: {
    namespace: {
      type: "text",
      short: "n",
      value: "namespace",
      summary: "Namespace of the Gateway (default that of the kubeconfig's context)",
    },
    strict: { type: "switch", summary: "Exit with 1 for warnings too" },
    output: {
      ...OUTPUT_OPTION,
      default: "text",
      choices: ["text", "json", "yaml"],
      summary: "Output format",
    },
    ...CLUSTER_OPTIONS,
  },
  examples: [
    { does: "A Gateway of the namespace shop", run: "check gateway/web -n shop" },
    { does: "In CI, after objects have been applied", run: "check gateway/web --strict" },
  ],
  async run({ argument = "", options: { strict, output, ...where } }, context) {
    const { gatewayFindings } = await import("../cluster/findings.ts");
    const findings = await gatewayFindings(argument, where, context);
    const errors = findings.filter(({ severity }) => severity === "error").length;
    const warnings = findings.length - errors;
    const lines = findings.map(
      ({ severity, object, condition, reason, message }) =>
        `${object}: ${severity}: ${condition} ${reason}: ${message}\n`,
    );
    await print({ findings }, output, context, () => lines.join(""));
    if (output === "text" && !context.json)
      await write(context.stdout, `${counted(errors, "error")}, ${counted(warnings, "warning")}\n`);
    return errors > 0 || (strict && warnings > 0) ? 1 : 0;
  },
});
