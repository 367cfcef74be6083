import { completionScript, SHELLS } from "../completion/scripts.ts";
import { write } from "../context.ts";
import { type Command, defineCommand, type Group } from "../define-command.ts";
import { usage } from "../errors.ts";

/** `root` is asked when the command runs, because this command is itself part of it. */
export function completionCommand(root: () => Group): Command {
  return defineCommand({
    name: "completion",
    summary: "Print a completion script for a shell",
    argument: { name: "shell", summary: `One of ${SHELLS.join(", ")}`, required: true, choices: SHELLS },
    options: {},
    examples: [
      { does: "Bash, for this session", run: "completion bash > /tmp/tgctl.bash && . /tmp/tgctl.bash" },
      { does: "Zsh, for good (a folder of $fpath)", run: "completion zsh > ~/.zfunc/_tgctl" },
      { does: "Fish, for good", run: "completion fish > ~/.config/fish/completions/tgctl.fish" },
    ],
    async run({ argument }, context) {
      const shell = SHELLS.find((name) => name === argument);
      if (shell === undefined) throw usage(`no completion for shell "${argument}"`, `one of ${SHELLS.join(", ")}`);
      await write(context.stdout, completionScript(shell, root()));
    },
  });
}
