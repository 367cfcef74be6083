import type { Group } from "../define-command.ts";
import { completionCommand } from "./completion.ts";
import { helpCommand } from "./help.ts";
import { proxy } from "./proxy/index.ts";
import { version } from "./version.ts";

const topics = ["version", "completion", ...[proxy, ...proxy.commands].map((node) => node.name)];

/** Every command of `tgctl`. */
export const commands: Group = {
  name: "tgctl",
  summary: "Look into a running tracegate proxy: traces, configuration, log levels, profiles",
  commands: [proxy, version, helpCommand(() => commands, topics), completionCommand(() => commands)],
  shortcuts: "proxy",
};
