import { Command as Parser } from "commander";
import { type Context, write } from "./context.ts";
import {
  type Command,
  type Found,
  findIn,
  type Group,
  type Invocation,
  isGroup,
  type Node,
  type OptionSpec,
  type OptionSpecs,
  shortcutsOf,
} from "./define-command.ts";
import { CliError, exitCode, renderError, renderErrorJson, usage } from "./errors.ts";
import { renderHelp } from "./help.ts";
import { writeVersion } from "./version.ts";

/**
 * Runs one command line (without the program's name) and returns its exit code; what it prints goes to the context's
 * streams. Never throws. A command that failed because the signal was aborted counts as that signal, not as a failure.
 */
export async function run(root: Group, argv: readonly string[], context: Omit<Context, "json">): Promise<number> {
  const dashes = argv.indexOf("--");
  const before = dashes === -1 ? argv : argv.slice(0, dashes);
  const rest = dashes === -1 ? undefined : argv.slice(dashes + 1);
  // Read here, because it may stand anywhere and also says how a wrong command line is reported.
  const json = before.includes("--json");
  const words = before.filter((word) => word !== "--json");
  try {
    const action = parse(root, words, rest);
    await action({ ...context, json });
    return context.signal.aborted ? signalCode(context.signal) : 0;
  } catch (thrown) {
    if (context.signal.aborted) return signalCode(context.signal);
    const error = CliError.from(thrown);
    await write(context.stderr, json ? renderErrorJson(error) : renderError(error));
    return exitCode(error.kind);
  }
}

/** Aborting the context's signal with this reason makes `run` return that exit code. */
export class Interruption extends Error {
  readonly exitCode: number;
  constructor(name: string, code: number) {
    super(name);
    this.exitCode = code;
  }
}

function signalCode(signal: AbortSignal): number {
  return signal.reason instanceof Interruption ? signal.reason.exitCode : 1;
}

type Action = (context: Context) => Promise<void>;

/** The action that a command line asks for; help is an action too. Throws usage errors. */
function parse(root: Group, words: readonly string[], rest: readonly string[] | undefined): Action {
  let action: Action | undefined;
  const choose = (chosen: Action) => {
    action = chosen;
  };
  try {
    groupParser(root, [], rest, choose).parse([...words], { from: "user" });
  } catch (error) {
    if (action === undefined) throw asUsage(error);
  }
  if (action === undefined) throw usage("no command given", `${root.name} --help`);
  return action;
}

function groupParser(
  group: Group,
  path: readonly string[],
  rest: readonly string[] | undefined,
  choose: (action: Action) => void,
): Parser {
  const parser = baseParser(group, path, choose);
  const inner = [...path, group.name];
  for (const node of group.commands) {
    const child = isGroup(node) ? groupParser(node, inner, rest, choose) : commandParser(node, inner, rest, choose);
    parser.addCommand(child, { isDefault: node.name === group.fallback });
  }
  const shortcuts = shortcutsOf(group);
  for (const node of shortcuts?.nodes ?? []) {
    const above = [...inner, shortcuts?.of.name ?? ""];
    parser.addCommand(
      isGroup(node) ? groupParser(node, above, rest, choose) : commandParser(node, above, rest, choose),
    );
  }
  if (path.length === 0) parser.option("-V, --version");
  if (group.fallback === undefined) {
    // That the first word is none of its commands says more than that there are too many.
    parser.allowExcessArguments(true);
    parser.argument("[command]").action((word: string | undefined, values: Readonly<Record<string, unknown>>) => {
      if (word !== undefined) throw unknownCommand(group, inner, word);
      if (values.version === true) return choose(writeVersion);
      choose((context) => write(context.stdout, renderHelp(group, path)));
    });
  }
  return parser;
}

/** The help of the node that the words name; without words, that of `root`. Throws a usage error for an unknown name. */
export function helpFor(root: Group, words: readonly string[]): string {
  let found: Found = { node: root, path: [] };
  for (const word of words) {
    const { node, path } = found;
    const next = isGroup(node) ? findIn(node, path, word) : undefined;
    if (next === undefined) throw unknownCommand(node, [...path, node.name], word);
    found = next;
  }
  return renderHelp(found.node, found.path);
}

function unknownCommand(node: Node, path: readonly string[], word: string): CliError {
  const name = path.join(" ");
  const names = isGroup(node) ? [...node.commands, ...(shortcutsOf(node)?.nodes ?? [])].map((child) => child.name) : [];
  const near = names.filter((candidate) => candidate.startsWith(word.slice(0, 2)));
  const hint = near.length > 0 ? near.map((candidate) => `${name} ${candidate}`).join(", or ") : `${name} --help`;
  return usage(`unknown command "${word}" for "${name}"`, hint);
}

function commandParser(
  command: Command,
  path: readonly string[],
  rest: readonly string[] | undefined,
  choose: (action: Action) => void,
): Parser {
  const parser = baseParser(command, path, choose);
  const name = [...path, command.name].join(" ");
  for (const [long, spec] of Object.entries(command.options)) addOption(parser, long, spec);
  // Declared variadic, so that the count is checked here with one message for every command.
  parser.argument("[words...]").action((words: readonly string[], values: Readonly<Record<string, unknown>>) => {
    const most = command.argument === undefined ? 0 : command.argument.many ? words.length : 1;
    if (words.length > most) throw usage(`accepts at most ${most} arg(s), received ${words.length}`, `${name} --help`);
    const argument = words[0];
    if (argument === undefined && command.argument?.required) {
      throw usage(`missing argument <${command.argument.name}>`, `${name} --help`);
    }
    if (rest !== undefined && command.rest === undefined) {
      throw usage("nothing may follow -- here", `${name} --help`);
    }
    const options = Object.fromEntries(
      Object.entries(command.options).map(([long, spec]) => [long, values[camelCase(long)] ?? absent(spec)]),
    ) as Invocation<OptionSpecs>["options"];
    choose((context) => command.run({ argument, words, rest, options }, context));
  });
  return parser;
}

function baseParser(node: Node, path: readonly string[], choose: (action: Action) => void): Parser {
  const parser = new Parser(node.name)
    .aliases([...(node.aliases ?? [])])
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} })
    .helpOption("-h, --help")
    .helpCommand(false);
  // Commander prints this before it throws; the help is chosen here and written by the runner.
  parser.helpInformation = () => {
    choose((context) => write(context.stdout, renderHelp(node, path)));
    return "";
  };
  return parser;
}

function addOption(parser: Parser, long: string, spec: OptionSpec): void {
  const dashes = `${spec.short === undefined ? "" : `-${spec.short}, `}--${long}`;
  if (spec.type === "switch") parser.option(dashes);
  else parser.option<unknown>(`${dashes} <${spec.value}>`, "", (value, before) => readValue(long, spec, value, before));
}

function readValue(long: string, spec: OptionSpec, value: string, before: unknown): unknown {
  switch (spec.type) {
    case "integer": {
      const number = Number(value);
      if (/^\d+$/.test(value) && number >= spec.min && number <= spec.max) return number;
      throw usage(`invalid --${long} ${value}; must be between ${spec.min} and ${spec.max}`);
    }
    case "text":
      if (spec.choices === undefined || spec.refuse === undefined || spec.choices.includes(value)) return value;
      throw usage(spec.refuse(value), `one of ${spec.choices.join(", ")}`);
    case "list":
      return [...(Array.isArray(before) ? before : []), ...value.split(",")];
    case "switch":
      return true;
  }
}

/** The value of an option that was not given. */
function absent(spec: OptionSpec): unknown {
  if (spec.type === "switch") return false;
  if (spec.type === "list") return [];
  return spec.default;
}

function camelCase(long: string): string {
  return long.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Commander's `error: unknown option '--x'\n(Did you mean --y?)` as our error; anything else passes. */
function asUsage(error: unknown): unknown {
  if (!(error instanceof Error) || !("code" in error) || !String(error.code).startsWith("commander.")) return error;
  const [first = "", ...more] = error.message.split("\n");
  const hint = more.join(" ").match(/\(Did you mean (.*)\?\)/)?.[1];
  return usage(first.replace(/^error: /, ""), hint);
}
