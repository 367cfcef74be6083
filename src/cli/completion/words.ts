import {
  type Command,
  type Group,
  isGroup,
  type Node,
  type OptionSpec,
  optionsOf,
  shortcutsOf,
} from "../define-command.ts";

/** What can follow a chain of names such as `proxy config all`. */
export interface CompletionPoint {
  /** The names that lead here, without the program; aliases lead to points of their own. */
  readonly path: readonly string[];
  /** Another path leads to the same commands: some name is an alias, or the name of a group is left out. */
  readonly aliased: boolean;
  readonly subcommands: readonly {
    readonly name: string;
    readonly aliases: readonly string[];
    readonly summary: string;
    /** The path that leads there without aliases and shortcuts. */
    readonly canonical: readonly string[];
  }[];
  /** Words for the positional argument. */
  readonly words: readonly string[];
  readonly options: readonly { readonly name: string; readonly spec: OptionSpec }[];
}

/** Every point of the command tree, the root first. */
export function completionPoints(group: Group): CompletionPoint[] {
  return groupPoints(group, [], [], false);
}

function groupPoints(
  group: Group,
  path: readonly string[],
  canonical: readonly string[],
  aliased: boolean,
): CompletionPoint[] {
  const shortcuts = shortcutsOf(group);
  const children: readonly { node: Node; above: readonly string[] }[] = [
    ...group.commands.map((node) => ({ node, above: canonical })),
    ...(shortcuts?.nodes ?? []).map((node) => ({ node, above: [...canonical, shortcuts?.of.name ?? ""] })),
  ];
  const fallback = group.commands.find((node) => node.name === group.fallback);
  const here: CompletionPoint = {
    path,
    aliased,
    subcommands: children.map(({ node: { name, aliases = [], summary }, above }) => ({
      name,
      aliases,
      summary,
      canonical: [...above, name],
    })),
    words: [],
    options: fallback === undefined || isGroup(fallback) ? [] : optionList(fallback),
  };
  const below = children.flatMap(({ node, above }) =>
    [node.name, ...(node.aliases ?? [])].flatMap((name) => {
      const inner = [...path, name];
      const alias = aliased || name !== node.name || above !== canonical;
      return isGroup(node)
        ? groupPoints(node, inner, [...above, node.name], alias)
        : [commandPoint(node, inner, alias)];
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
