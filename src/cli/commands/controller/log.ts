import { CONTROLLER_COMPONENTS } from "../../../base/log-filter.ts";
import { adminResult } from "../../proxy/admin.ts";
import { failureOf } from "../../proxy/proxies.ts";
import { write, writeJson } from "../../runner/context.ts";
import { defineCommand } from "../../runner/define-command.ts";
import { CliError } from "../../runner/errors.ts";
import { levelOption, readDirectives } from "../log-levels.ts";
import { CONTROLLER_OPTIONS } from "./options.ts";

const LEVELS = ["error", "warn", "info", "debug", "trace"] as const;

export const controllerLog = defineCommand({
  name: "log",
  summary: "Show or set the log levels of the controller's components",
  description: [
    "Without --level and --set it prints the level of each component. A change applies to all replicas, until they restart.",
  ],
  options: {
    ...CONTROLLER_OPTIONS,
    level: levelOption(LEVELS, "Set the level of all components"),
    set: {
      type: "list",
      value: "component=level",
      summary: "Set the level of one component; repeat it, or separate by commas",
    },
  },
  examples: [
    { does: "What is logged?", run: "controller log" },
    { does: "Log more", run: "controller log --level debug" },
    { does: "Log more of one component", run: "controller log --set tracegate/translator=debug" },
  ],
  async run({ options }, context) {
    const { level } = options;
    const set = readDirectives(options, "component", LEVELS, "--set deployer=debug");
    const changes = new Map(level === undefined ? set : [["level", level]]);
    const { Controllers } = await import("../../cluster/controllers.ts");
    await using controllers = await Controllers.open(options, context);
    const { signal } = context;
    const outcomes = await controllers.each(async (controller) => {
      const { client } = controller;
      const text = await adminResult(controller, client.setLogging(changes, { signal }), refusal);
      return context.json && changes.size > 0 ? adminResult(controller, client.logging({ signal })) : text;
    });
    const replies = outcomes.flatMap(({ name, pod, result }) =>
      result.status === "fulfilled" ? [{ name, pod, text: result.value }] : [],
    );
    if (context.json && replies.length > 0) {
      await writeJson(
        context,
        replies.map(({ pod, text }) => ({ pod: pod?.name, namespace: pod?.namespace, levels: levelsOf(text) })),
      );
    } else {
      for (const { name, text } of replies)
        await write(context.stdout, outcomes.length > 1 ? `${name}:\n${text}` : text);
    }
    const failure = failureOf(outcomes);
    if (failure !== undefined) throw failure;
  },
});

/** Components are not checked here, because a controller of another version may have others. */
function refusal(status: number, body: string): CliError {
  return new CliError("failure", `unexpected status code: ${status}`, {
    why: body,
    ...(body.startsWith("logger not found") && { hint: `one of ${CONTROLLER_COMPONENTS.join(", ")}` }),
  });
}

/** The lines `<component>: <level>` below `---`. */
function levelsOf(text: string): Readonly<Record<string, string>> {
  const [, lines = ""] = text.split("---\n");
  return Object.fromEntries(
    lines
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split(": ")),
  );
}
