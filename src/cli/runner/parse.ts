import { parseArgs } from "node:util";
import { suggest } from "../../base/suggest.ts";
import {
  COMMON_OPTIONS,
  type Command,
  type Found,
  fallbackOf,
  findIn,
  type Group,
  type Invocation,
  isGroup,
  type Node,
  type OptionSpec,
  type OptionSpecs,
  type Program,
  shortcutsOf,
} from "./define-command.ts";
import { type CliError, usage } from "./errors.ts";

/** A parsed command line. */
type Request =
  | {
      readonly kind: "run";
      readonly command: Command;
      readonly invocation: Invocation<OptionSpecs>;
    }
  | { readonly kind: "help"; readonly found: Found }
  | { readonly kind: "version"; readonly form: "long" | "short" };

/** Options of the program itself, given without a command. */
const PROGRAM_OPTIONS = {
  version: { type: "switch", summary: "" },
  V: { type: "switch", short: "V", summary: "" },
} as const satisfies OptionSpecs;

/**
 * Reads a command line without the program's name. `--json` and `--help` may stand anywhere before `--`; everything after `--`
 * belongs to the command as it is. Throws usage errors.
 */
export function parseCommandLine(program: Program, argv: readonly string[]): Request {
  const { words, rest } = splitRest(argv);
  const { node, path, words: left } = locate(program, words);
  if (isGroup(node)) return parseGroup(program, { node, path }, left);
  const { tokens, positionals } = tokenize(left, { ...node.options, ...COMMON_OPTIONS });
  const name = [...path, node.name].join(" ");
  if (tokens.some((token) => token.name === "help")) return { kind: "help", found: { node, path } };
  const options = readOptions(node, name, tokens);
  checkOperands(node, name, positionals, rest);
  return { kind: "run", command: node, invocation: { argument: positionals[0], words: positionals, rest, options } };
}

/** The words before the first `--`, and the words after it; undefined without `--`. */
export function splitRest(argv: readonly string[]): { words: readonly string[]; rest: readonly string[] | undefined } {
  const dashes = argv.indexOf("--");
  if (dashes === -1) return { words: argv, rest: undefined };
  return { words: argv.slice(0, dashes), rest: argv.slice(dashes + 1) };
}

/** A node that words name, and the words that are not part of its name. */
interface Located extends Found {
  readonly words: readonly string[];
}

/** Follows names as far as they lead, ignoring options between them. */
export function walk(program: Program, words: readonly string[]): Located & { readonly operand: string | undefined } {
  let found: Found = { node: program, path: [] };
  let left = words;
  while (isGroup(found.node)) {
    const at = firstOperand(found.node, left);
    const operand = at === undefined ? undefined : left[at];
    const next = operand === undefined ? undefined : findIn(found.node, found.path, operand);
    if (at === undefined || next === undefined) return { ...found, words: left, operand };
    left = left.toSpliced(at, 1);
    found = next;
  }
  return { ...found, words: left, operand: undefined };
}

/**
 * The node that the words ask for. A group means its fallback, except for help and version. Throws a usage error
 * for an unknown name.
 */
function locate(program: Program, argv: readonly string[]): Located {
  const { node, path, words, operand } = walk(program, argv);
  if (!isGroup(node)) return { node, path, words };
  const fallback = fallbackOf(node);
  if (operand !== undefined && fallback?.argument === undefined)
    throw unknownCommand(program, node, [...path, node.name], operand);
  const { tokens } = tokenize(words, { ...COMMON_OPTIONS, ...PROGRAM_OPTIONS });
  // `--help` with options of the default command shows the help of that command.
  const own = tokens.every(({ name }) => name in COMMON_OPTIONS);
  const isFlag = tokens.some(({ name }) => (name === "help" && own) || (node === program && name in PROGRAM_OPTIONS));
  return fallback === undefined || isFlag
    ? { node, path, words }
    : { node: fallback, path: [...path, node.name], words };
}

/** The help of the node that the words name; without words, that of the program. Throws a usage error for an unknown name. */
export function findByWords(program: Program, words: readonly string[]): Found {
  let found: Found = { node: program, path: [] };
  for (const word of words) {
    const { node, path } = found;
    const next = isGroup(node) ? findIn(node, path, word) : undefined;
    if (next === undefined) throw unknownCommand(program, node, [...path, node.name], word);
    found = next;
  }
  return found;
}

interface OptionToken {
  readonly name: string;
  /** The option as written, such as `-o`. */
  readonly raw: string;
  /** undefined without a value: a following word that starts with a dash is the next option. */
  readonly value: string | undefined;
}

/** Options and operands by Node's own parser; the caller reports unknown options and missing values. */
function tokenize(
  words: readonly string[],
  specs: OptionSpecs,
): { readonly tokens: readonly OptionToken[]; readonly positionals: readonly string[]; readonly first?: number } {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      name,
      {
        type: spec.type === "switch" ? "boolean" : "string",
        ...(spec.short !== undefined && { short: spec.short }),
      } as const,
    ]),
  );
  const parsed = parseArgs({ args: [...words], options, allowPositionals: true, strict: false, tokens: true });
  const first = parsed.tokens.find((token) => token.kind === "positional")?.index;
  return {
    tokens: parsed.tokens
      .filter((token) => token.kind === "option")
      .map(({ name, rawName, value, inlineValue }) => ({
        name,
        raw: rawName,
        value: inlineValue !== true && value !== undefined && /^-./.test(value) ? undefined : value,
      })),
    positionals: parsed.positionals,
    ...(first !== undefined && { first }),
  };
}

/** The index of the first word that is neither an option nor the value of one that some command below the group has. */
function firstOperand(group: Group, words: readonly string[]): number | undefined {
  return tokenize(words, { ...allOptions(group), ...COMMON_OPTIONS }).first;
}

function allOptions(node: Node): OptionSpecs {
  if (!isGroup(node)) return node.options;
  return Object.assign({}, ...node.commands.map(allOptions));
}

function parseGroup(program: Program, found: Found, words: readonly string[]): Request {
  const { tokens } = tokenize(words, { ...COMMON_OPTIONS, ...PROGRAM_OPTIONS });
  const known = new Set([
    ...Object.keys(COMMON_OPTIONS),
    ...(found.node === program ? Object.keys(PROGRAM_OPTIONS) : []),
  ]);
  const unknown = tokens.find(({ name }) => !known.has(name));
  if (unknown !== undefined) throw unknownOption(unknown, known);
  const has = (wanted: string) => tokens.some(({ name }) => name === wanted);
  if (has("help")) return { kind: "help", found };
  if (has("version")) return { kind: "version", form: "long" };
  if (has("V")) return { kind: "version", form: "short" };
  return { kind: "help", found };
}

function readOptions(
  command: Command,
  name: string,
  tokens: readonly OptionToken[],
): Invocation<OptionSpecs>["options"] {
  const known = new Map<string, OptionSpec>(Object.entries({ ...command.options, ...COMMON_OPTIONS }));
  const values = new Map<string, unknown>();
  for (const token of tokens) {
    const spec = known.get(token.name);
    if (spec === undefined) throw unknownOption(token, known.keys());
    values.set(token.name, readValue(token, spec, values.get(token.name), name));
  }
  return Object.fromEntries(
    Object.entries(command.options).map(([long, spec]) => [long, values.get(long) ?? absent(spec)]),
  ) as Invocation<OptionSpecs>["options"];
}

function readValue({ name, raw, value }: OptionToken, spec: OptionSpec, before: unknown, command: string): unknown {
  if (spec.type === "switch") {
    if (value !== undefined) throw usage(`option '${raw}' takes no value`);
    return true;
  }
  if (value === undefined || value === "") {
    const short = spec.short === undefined ? "" : `-${spec.short}, `;
    throw usage(`option '${short}--${name} <${spec.value}>' argument missing`, `${command} --help`);
  }
  switch (spec.type) {
    case "integer": {
      const number = Number(value);
      if (/^\d+$/.test(value) && number >= spec.min && number <= spec.max) return number;
      throw usage(`invalid --${name} ${value}; must be between ${spec.min} and ${spec.max}`);
    }
    case "text":
      if (spec.choices === undefined || spec.invalid === undefined || spec.choices.includes(value)) return value;
      throw usage(spec.invalid(value), `one of ${spec.choices.join(", ")}`);
    case "list":
      return [...(Array.isArray(before) ? before : []), ...(spec.whole === true ? [value] : value.split(","))];
  }
}

/** The value of an option that was not given. */
function absent(spec: OptionSpec): unknown {
  if (spec.type === "switch") return false;
  if (spec.type === "list") return [];
  return spec.default;
}

function checkOperands(
  command: Command,
  name: string,
  words: readonly string[],
  rest: readonly string[] | undefined,
): void {
  const { argument } = command;
  const most = argument === undefined ? 0 : argument.many ? words.length : 1;
  if (words.length > most) {
    const takesFile = argument === undefined && command.options.file?.short === "f";
    let hint = takesFile ? `${name} -f ${words[0]}` : `${name} --help`;
    const url = words.findIndex((word) => /^https?:\/\//.test(word));
    if (command.rest !== undefined && url !== -1)
      hint = `write -- before the URL: ${[name, ...words.slice(0, url), "[options]", "--", ...words.slice(url)].join(" ")}`;
    else if (argument === undefined && command.rest !== undefined) hint = `${name} [options] -- ${words.join(" ")}`;
    throw usage(`accepts at most ${most} arg(s), received ${words.length}`, hint);
  }
  if (argument?.required && words.length === 0) throw usage(`missing argument <${argument.name}>`, `${name} --help`);
  if (rest !== undefined && command.rest === undefined) throw usage("nothing may follow -- here", `${name} --help`);
}

function unknownOption({ raw, name }: OptionToken, known: Iterable<string>): CliError {
  const near = suggest(name, known);
  return usage(`unknown option '${raw}'`, near === undefined ? undefined : `--${near}`);
}

function unknownCommand(program: Program, node: Node, path: readonly string[], word: string): CliError {
  const name = path.join(" ");
  const names = isGroup(node) ? [...node.commands, ...(shortcutsOf(node)?.nodes ?? [])].map((child) => child.name) : [];
  const near = suggest(word, names);
  const hint = program.hintFor?.(word) ?? (near === undefined ? `${name} --help` : `${name} ${near}`);
  return usage(`unknown command "${word}" for "${name}"`, hint);
}
