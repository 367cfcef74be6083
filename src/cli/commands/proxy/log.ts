import { messageOf } from "../../../base/errors.ts";
import { parseLogFilter } from "../../../base/log-filter.ts";
import { adminResult } from "../../proxy/admin.ts";
import { failureOf, RESOURCE, TARGET_OPTIONS } from "../../proxy/proxies.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { usage } from "../../runner/errors.ts";
import { readDirectives, unknownLevel } from "../log-levels.ts";
import { openProxies } from "../open-proxies.ts";

const LEVELS = ["error", "warn", "info", "debug", "trace", "off"] as const;

export const log = defineCommand({
  name: "log",
  summary: "Show or set the log level of a running proxy",
  description: [
    "Without --level, --set and --reset it prints the current filter. A change lasts until the proxy exits.",
  ],
  argument: RESOURCE,
  options: {
    ...TARGET_OPTIONS,
    "proxy-admin-port": { ...TARGET_OPTIONS["proxy-admin-port"], short: "p" },
    level: {
      type: "text",
      value: "filter",
      choices: LEVELS,
      summary: "Set the level of all modules, or several levels at once, such as info,request=off",
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
    { does: "No access log", run: "proxy log --level info,request=off" },
    { does: "Log more of one module", run: "proxy log --set upstream=trace" },
    { does: "Back to the initial filter", run: "proxy log --reset" },
  ],
  async run(invocation, context) {
    const { level, reset } = invocation.options;
    if (level !== undefined) checkFilter(level);
    const set = readDirectives(invocation.options, "module", LEVELS, "--set proxy=debug");
    const directives = level ?? set.map((pair) => pair.join("=")).join(",");
    const change = directives !== "" || reset;
    const { signal } = context;
    await using proxies = await openProxies(invocation, context);
    const outcomes = await proxies.each(async (proxy) => {
      const { client } = proxy;
      const response = await adminResult(
        proxy,
        change ? client.setLogging(directives, { reset, signal }) : client.logging({ signal }),
      );
      const [current = "", ...warnings] = response.trim().split("\n");
      for (const warning of warnings) await write(context.stderr, `Warning: ${warning}\n`);
      return current;
    });
    const levels = outcomes.flatMap(({ name, pod, result }) =>
      result.status === "fulfilled" ? [{ name, pod, text: result.value }] : [],
    );
    if (context.json) {
      const found = levels.map(({ pod, text }) => ({
        ...(pod !== undefined && { pod: pod.name, namespace: pod.namespace }),
        level: text.replace(/^current log level is /, ""),
      }));
      // Of pods it is always a list, so that a script need not care how many there are.
      if (found.length > 0) await writeJson(context, found[0]?.pod === undefined ? found[0] : found);
    } else {
      for (const { name, text } of levels)
        await write(context.stdout, outcomes.length > 1 ? `${name}:\n${text}\n` : `${text}\n`);
    }
    const failure = failureOf(outcomes);
    if (failure !== undefined) throw failure;
  },
});

/** @throws CliError for a filter that the proxy would reject */
function checkFilter(filter: string): void {
  if (/^\w+$/.test(filter) && !LEVELS.some((level) => level === filter))
    throw usage(unknownLevel(filter), `one of ${LEVELS.join(", ")}`);
  try {
    parseLogFilter(filter);
  } catch (error) {
    throw usage(messageOf(error), "--level info,request=off");
  }
}
