import { type Command, type Group, isGroup, type OptionSpec, optionsOf } from "../define-command.ts";

/** What can follow a chain of names such as `proxy config all`. */
export interface CompletionPoint {
  /** The names that lead here, without the program; aliases lead to points of their own. */
  readonly path: readonly string[];
  /** Some name of the path is an alias. */
  readonly aliased: boolean;
  readonly subcommands: readonly {
    readonly name: string;
    readonly aliases: readonly string[];
    readonly summary: string;
  }[];
  /** Words for the positional argument. */
  readonly words: readonly string[];
  readonly options: readonly { readonly name: string; readonly spec: OptionSpec }[];
}

/** Every point of the command tree, the root first. */
export function completionPoints(group: Group, path: readonly string[] = [], aliased = false): CompletionPoint[] {
  const fallback = group.commands.find((node) => node.name === group.fallback);
  const here: CompletionPoint = {
    path,
    aliased,
    subcommands: group.commands.map(({ name, aliases = [], summary }) => ({ name, aliases, summary })),
    words: [],
    options: fallback === undefined || isGroup(fallback) ? [] : optionList(fallback),
  };
  const below = group.commands.flatMap((node) =>
    [node.name, ...(node.aliases ?? [])].flatMap((name) => {
      const inner = [...path, name];
      const alias = aliased || name !== node.name;
      return isGroup(node) ? completionPoints(node, inner, alias) : [commandPoint(node, inner, alias)];
    }),
  );
  return [here, ...below];
}

function commandPoint(command: Command, path: readonly string[], aliased: boolean): CompletionPoint {
  const words = command.argument?.choices ?? [];
  return { path, aliased, subcommands: [], words, options: optionList(command) };
}

function optionList(command: Command): CompletionPoint["options"] {
  return optionsOf(command).map(([name, spec]) => ({ name, spec }));
}

/** The values an option can take; `file` stands for any file, `undefined` for anything. */
export function valuesOf(spec: OptionSpec): readonly string[] | "file" | undefined {
  if (spec.type !== "text") return undefined;
  return spec.completes ?? spec.choices;
}
