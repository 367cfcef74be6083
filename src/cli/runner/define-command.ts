/**
 * Commands are data: names, help, arguments, options, examples and a handler. One runner parses and reports for every program
 * of the project (`tracegate`, `tgctl`); help and shell completion come from the same data.
 */
import type { Context } from "./context.ts";

interface OptionBase {
  /** One letter, without the dash. */
  readonly short?: string;
  /** One line, no trailing period. */
  readonly summary: string;
  /** Not in help and completion: an option that programs of this project pass to each other. */
  readonly hidden?: true;
}

export type OptionSpec =
  | (OptionBase & { readonly type: "switch" })
  | (OptionBase & {
      readonly type: "text";
      /** Placeholder of the value in help. */
      readonly value: string;
      readonly default?: string;
      readonly choices?: readonly string[];
      /** The error for a value outside `choices`; without it they are only suggestions. */
      readonly invalid?: (value: string) => string;
      readonly completes?: "file";
    })
  | (OptionBase & {
      readonly type: "integer";
      readonly value: string;
      readonly min: number;
      readonly max: number;
      readonly default?: number;
    })
  /** May be given several times, or once with commas; `whole`: commas belong to the value. */
  | (OptionBase & {
      readonly type: "list";
      readonly value: string;
      readonly whole?: true;
      readonly completes?: "file";
    });

/** Options by long name, without the dashes. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type OptionValue<S extends OptionSpec> = S extends { type: "switch" }
  ? boolean
  : S extends { type: "list" }
    ? readonly string[]
    : S extends { type: "integer" }
      ? S extends { default: number }
        ? number
        : number | undefined
      : S extends { default: string }
        ? string
        : string | undefined;

type OptionValues<S extends OptionSpecs> = { readonly [K in keyof S]: OptionValue<S[K]> };

/** A positional argument; a command declares at most one. */
export interface ArgumentSpec {
  readonly name: string;
  readonly summary: string;
  readonly required?: true;
  /** It may be given more than once. */
  readonly many?: true;
  readonly choices?: readonly string[];
  readonly completes?: "file";
}

export interface Example {
  readonly does: string;
  /** The command line without the program's name. */
  readonly run: string;
}

/** The input of a handler. */
export interface Invocation<S extends OptionSpecs> {
  readonly argument: string | undefined;
  /** All of them, of an argument that may be given more than once. */
  readonly words: readonly string[];
  /** Everything after `--`; undefined when there was no `--`. */
  readonly rest: readonly string[] | undefined;
  readonly options: OptionValues<S>;
}

export interface Command<S extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  /** Paragraphs of the help, below the summary. */
  readonly description?: readonly string[];
  readonly argument?: ArgumentSpec;
  /** What may follow `--`. */
  readonly rest?: { readonly name: string; readonly summary: string };
  readonly options: S;
  readonly examples: readonly Example[];
  /** Resolves with the exit code; without one the command has succeeded. Rejects with `CliError`. */
  run(invocation: Invocation<S>, context: Context): Promise<void> | Promise<number>;
}

export interface Group {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly description?: readonly string[];
  readonly commands: readonly Node[];
  /** The subcommand that runs when none is named. */
  readonly fallback?: string;
  /** The subcommand, a group, whose commands may be called without its name. */
  readonly shortcuts?: string;
}

export type Node = Command | Group;

/** The root of a program's commands, with the texts of its help and errors. */
export interface Program extends Group {
  /** Begins the first line of an error: `Error` gives `Error: unknown command`. */
  readonly errorPrefix: string;
  /** Environment variables for the help: name and meaning. */
  readonly environment: readonly (readonly [name: string, meaning: string])[];
  /** Exit codes for the help: code and meaning. */
  readonly exitCodes: readonly (readonly [code: number, meaning: string])[];
  /** Runs for `--version`, and for its short form `-V`. */
  version(form: "long" | "short", context: Context): Promise<void>;
  /** A suggestion for a word that is not a command. */
  hintFor?(word: string): string | undefined;
}

/** Types a command's handler by its options. The result is widened, so that commands can stand in one list. */
export function defineCommand<const S extends OptionSpecs>(command: Command<S>): Command {
  // The runner builds the values from this very spec, so they have the type that the handler expects.
  return command as unknown as Command;
}

export function isGroup(node: Node): node is Group {
  return "commands" in node;
}

/** The commands that can be called without the name of their group, and that group; none for most groups. */
export function shortcutsOf(group: Group): { readonly of: Group; readonly nodes: readonly Node[] } | undefined {
  const of = group.commands.find((node) => node.name === group.shortcuts);
  return of === undefined || !isGroup(of) ? undefined : { of, nodes: of.commands };
}

/** A node of the command tree with the names of the groups above it. */
export interface Found {
  readonly node: Node;
  readonly path: readonly string[];
}

/** The node of a group that a word names, by name, alias or as a shortcut. */
export function findIn(group: Group, path: readonly string[], word: string): Found | undefined {
  const named = (node: Node) => node.name === word || node.aliases?.includes(word) === true;
  const inner = [...path, group.name];
  const own = group.commands.find(named);
  if (own !== undefined) return { node: own, path: inner };
  const shortcuts = shortcutsOf(group);
  const short = shortcuts?.nodes.find(named);
  return short === undefined || shortcuts === undefined
    ? undefined
    : { node: short, path: [...inner, shortcuts.of.name] };
}

/** Options that every command has. */
export const COMMON_OPTIONS = {
  json: { type: "switch", summary: "Print results and errors as JSON" },
  help: { type: "switch", short: "h", summary: "Show this help" },
} as const satisfies OptionSpecs;

/** The options of a command that help and completion show, the common ones last. */
export function optionsOf(command: Command): readonly (readonly [string, OptionSpec])[] {
  return [...Object.entries<OptionSpec>(command.options), ...Object.entries<OptionSpec>(COMMON_OPTIONS)].filter(
    ([, spec]) => spec.hidden !== true,
  );
}

/** The command that runs when a group is named without a subcommand. */
export function fallbackOf(group: Group): Command | undefined {
  const node = group.commands.find(({ name }) => name === group.fallback);
  return node === undefined || isGroup(node) ? undefined : node;
}
