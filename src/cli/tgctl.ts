import { buildInfo, packageVersion } from "../base/build-info.ts";
import { check } from "./commands/check.ts";
import { controllerGroup } from "./commands/controller/index.ts";
import { convertGroup } from "./commands/convert.ts";
import { proxyGroup } from "./commands/proxy/index.ts";
import { completionCommand, helpCommand } from "./runner/builtin.ts";
import { type Context, write } from "./runner/context.ts";
import { defineCommand, type Program } from "./runner/define-command.ts";
import { EXIT_CODES } from "./runner/errors.ts";
import type { TraceView } from "./trace/view.ts";

/**
 * `tgctl` with all its commands. `loadTraceView` loads the terminal UI: only a command that shows it pays for that. `name`: what it is called by
 * in its help.
 */
export function tgctl(loadTraceView: () => Promise<TraceView>, name = "tgctl"): Program {
  const proxy = proxyGroup(loadTraceView);
  const topics = [
    "check",
    "convert",
    "version",
    "completion",
    ...[proxy, ...proxy.commands, controllerGroup].map((node) => node.name),
  ];
  const program: Program = {
    name,
    summary: "Inspect tracegate proxies, on this machine or in Kubernetes: traces, configuration, log levels, profiles",
    commands: [
      proxy,
      controllerGroup,
      check,
      convertGroup,
      version,
      helpCommand(() => program, topics, "proxy trace"),
      completionCommand("tgctl"),
    ],
    shortcuts: "proxy",
    errorPrefix: "Error",
    environment: [
      ["TGCTL_ADMIN", "Address of the admin server on this machine, host:port or unix:/path; default localhost:15000"],
      ["KUBECONFIG", "Kubeconfig; if there is one, commands without --local are about the cluster"],
      ["NO_COLOR", "When set, output in a terminal has no colors"],
    ],
    exitCodes: EXIT_CODES.map(({ code, meaning }) => [code, meaning]),
    version: (_form, context) => writeVersion(context),
  };
  return program;
}

const version = defineCommand({
  name: "version",
  summary: "Print the version of this client as one line of JSON",
  options: {},
  examples: [{ does: "The version of this client", run: "version" }],
  run: (_invocation, context) => writeBuild(context),
});

/** `tgctl --version`: one line for people; as JSON the same as `tgctl version`. */
async function writeVersion(context: Context): Promise<void> {
  if (context.json) return writeBuild(context);
  await write(context.stdout, `tgctl ${packageVersion()}\n`);
}

/** `tgctl version`: one line of JSON. */
async function writeBuild(context: Context): Promise<void> {
  const runtime = { runtimeOS: process.platform, runtimeArch: process.arch, node: process.versions.node };
  await write(context.stdout, `${JSON.stringify({ ...buildInfo(), ...runtime })}\n`);
}
