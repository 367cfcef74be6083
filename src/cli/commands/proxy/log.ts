import { adminResult, localAdmin } from "../../admin.ts";
import { write, writeJson } from "../../context.ts";
import { defineCommand } from "../../define-command.ts";
import { CliError, usage } from "../../errors.ts";
import { RESOURCE, requireTarget, TARGET_OPTIONS } from "./target.ts";

const LEVELS = ["error", "warn", "info", "debug", "trace", "off"] as const;

function unknownLevel(level: string): string {
  return `unknown level "${level}"`;
}

export const log = defineCommand({
  name: "log",
  summary: "Show or set the log level of a running proxy",
  description: [
    "Without --level, --set and --reset it prints the current filter. A change lasts until the proxy exits.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    level: {
      type: "text",
      value: "level",
      choices: LEVELS,
      invalid: unknownLevel,
      summary: "Set the level of all modules",
    },
    set: {
      type: "list",
      value: "module=level",
      summary: "Set the level of one module; repeat it, or separate by commas",
    },
    reset: { type: "switch", summary: "Return to the filter that the proxy started with, before --level or --set" },
  },
  examples: [
    { does: "What is logged?", run: "proxy log" },
    { does: "Log more", run: "proxy log --level debug" },
    { does: "Log more of one module", run: "proxy log --set upstream=trace" },
    { does: "Back to the filter of the start", run: "proxy log --reset" },
  ],
  async run(invocation, context) {
    requireTarget(invocation);
    const { level, set, reset, "proxy-admin-port": port } = invocation.options;
    if (level !== undefined && set.length > 0) throw usage("--level and --set are mutually exclusive");
    for (const directive of set) checkDirective(directive);
    const directives = set.length > 0 ? set.join(",") : (level ?? "");
    const change = directives !== "" || reset;
    const client = localAdmin(port, context.env);
    const { signal } = context;
    const response = await adminResult(
      change ? client.setLogging(directives, { reset, signal }) : client.logging({ signal }),
      (status, body) => new CliError("failure", `unexpected status code: ${status}`, { why: body }),
    );
    const [current = "", ...warnings] = response.trim().split("\n");
    for (const warning of warnings) await write(context.stderr, `Warning: ${warning}\n`);
    if (!context.json) return write(context.stdout, `${current}\n`);
    await writeJson(context, { level: current.replace(/^current log level is /, "") });
  },
});

function checkDirective(directive: string): void {
  const [module = "", level = "", ...more] = directive.split("=");
  if (module === "" || level === "" || more.length > 0) {
    throw usage(`invalid --set value "${directive}": expected module=level`, "--set proxy=debug");
  }
  if (!LEVELS.some((known) => known === level)) throw usage(unknownLevel(level), `one of ${LEVELS.join(", ")}`);
}
