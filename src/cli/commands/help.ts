import { write } from "../context.ts";
import { type Command, defineCommand, type Group } from "../define-command.ts";
import { helpFor } from "../runner.ts";

/** `root` is a function because this command is itself part of it. */
export function helpCommand(root: () => Group, names: readonly string[]): Command {
  return defineCommand({
    name: "help",
    summary: "Show the help of a command",
    argument: {
      name: "command",
      summary: "The words of the command; without them, the overview",
      many: true,
      choices: names,
    },
    options: {},
    examples: [{ does: "What can the trace command do?", run: "help proxy trace" }],
    run: ({ words }, context) => write(context.stdout, helpFor(root(), words)),
  });
}
