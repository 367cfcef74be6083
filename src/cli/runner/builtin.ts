import { completionScript, SHELLS, type Shell } from "./completion.ts";
import { write } from "./context.ts";
import { type Command, defineCommand, type Program } from "./define-command.ts";
import { usage } from "./errors.ts";
import { renderHelp } from "./help.ts";
import { findByWords } from "./parse.ts";

/** The commands that every program has. `program` is a function because they are themselves part of it. */

/** `help`: the same text as `--help`; `topics` are the candidates of completion. */
export function helpCommand(program: () => Program, topics: readonly string[], example: string): Command {
  return defineCommand({
    name: "help",
    summary: "Show the help of a command",
    argument: {
      name: "command",
      summary: "The command; without it, shows the overview",
      many: true,
      choices: topics,
    },
    options: {},
    examples: [{ does: `Help of the ${example.split(" ").at(-1)} command`, run: `help ${example}` }],
    run: ({ words }, context) => write(context.stdout, renderHelp(program(), findByWords(program(), words))),
  });
}

export function completionCommand(name: string): Command {
  return defineCommand({
    name: "completion",
    summary: "Print a completion script for a shell",
    argument: { name: "shell", summary: `One of ${SHELLS.join(", ")}`, required: true, choices: SHELLS },
    options: {},
    examples: [
      { does: "Bash, for this session", run: `completion bash > /tmp/${name}.bash && . /tmp/${name}.bash` },
      { does: "Zsh, permanently (a folder of $fpath)", run: `completion zsh > ~/.zfunc/_${name}` },
      { does: "Fish, permanently", run: `completion fish > ~/.config/fish/completions/${name}.fish` },
    ],
    async run({ argument }, context) {
      const shell = SHELLS.find((each): each is Shell => each === argument);
      if (shell === undefined) throw usage(`no completion for shell "${argument}"`, `one of ${SHELLS.join(", ")}`);
      await write(context.stdout, completionScript(shell, name));
    },
  });
}
