import {
  type Command,
  type Found,
  fallbackOf,
  type Group,
  isGroup,
  type OptionSpec,
  optionsOf,
  type Program,
  shortcutsOf,
} from "./define-command.ts";

const WIDTH = 100;

/** The help of a command or group of the program. */
export function renderHelp(program: Program, { node, path }: Found): string {
  return isGroup(node) ? groupHelp(program, node, path) : commandHelp(program, node, path);
}

function commandHelp(program: Program, command: Command, path: readonly string[]): string {
  const sections = [
    [command.summary],
    ...(command.description ?? []).map((paragraph) => wrap(paragraph, WIDTH)),
    ["Usage:", `  ${usageLine(command, path)}`],
  ];
  if (command.aliases !== undefined) sections.push(["Aliases:", `  ${command.aliases.join(", ")}`]);
  const operands = operandRows(command);
  if (operands.length > 0) sections.push(["Arguments:", ...operands]);
  sections.push(["Options:", ...optionRows(command)]);
  if (command.examples.length > 0) {
    sections.push([
      "Examples:",
      ...command.examples.flatMap(({ does, run }) => [`  # ${does}`, `  ${program.name} ${run}`]),
    ]);
  }
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function groupHelp(program: Program, group: Group, path: readonly string[]): string {
  const name = [...path, group.name].join(" ");
  const sections = [
    [group.summary],
    ...(group.description ?? []).map((paragraph) => wrap(paragraph, WIDTH)),
    ["Usage:", ...usageLines(program, group, path)],
  ];
  if (group.aliases !== undefined) sections.push(["Aliases:", `  ${group.aliases.join(", ")}`]);
  sections.push(["Commands:", ...columns(group.commands.map((node) => [node.name, node.summary]))]);
  const shortcuts = shortcutsOf(group);
  if (shortcuts !== undefined) {
    const names = shortcuts.nodes.map((node) => node.name).join(", ");
    sections.push([
      "Shortcuts:",
      `  ${names}: the commands of "${name} ${shortcuts.of.name}", without "${shortcuts.of.name}"`,
    ]);
  }
  const fallback = fallbackOf(group);
  if (fallback !== undefined) {
    const ofDefault = `of ${fallback.name}, the default command:`;
    const operands = operandRows(fallback);
    if (operands.length > 0) sections.push([`Arguments ${ofDefault}`, ...operands]);
    sections.push([`Options ${ofDefault}`, ...optionRows(fallback)]);
  }
  if (group === program) {
    sections.push(["Options:", "  -V, --version  Print the version", "  -h, --help     Show this help"]);
    sections.push(["Environment:", ...columns(program.environment)]);
    sections.push([
      "Exit codes:",
      ...columns(program.exitCodes.map(([code, meaning]) => [String(code).padStart(3), meaning])),
    ]);
  }
  sections.push([`Run "${name} <command> --help" for the options and examples of a command.`]);
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function usageLines(program: Program, group: Group, path: readonly string[]): string[] {
  const name = [...path, group.name].join(" ");
  const fallback = fallbackOf(group);
  if (fallback === undefined) return [`  ${name} <command> [options]`];
  if (group === program) return [`  ${name} [command] [options]`];
  return [`  ${usageLine({ ...fallback, name: group.name }, path)}`, `  ${name} <command> [options]`];
}

function operandRows({ argument, rest }: Command): string[] {
  const rows: [string, string][] = [];
  if (argument) rows.push([operand(argument), argument.summary]);
  if (rest) rows.push([`-- ${rest.name}`, rest.summary]);
  return columns(rows);
}

function optionRows(command: Command): string[] {
  return columns(optionsOf(command).map(([name, spec]) => [flags(name, spec), optionSummary(spec)]));
}

function usageLine(command: Command, path: readonly string[]): string {
  const parts = [...path, command.name, "[options]"];
  if (command.argument) parts.push(operand(command.argument));
  if (command.rest) parts.push(`[-- ${command.rest.name}]`);
  return parts.join(" ");
}

function operand(argument: { readonly name: string; readonly required?: true; readonly many?: true }): string {
  if (argument.many) return `[${argument.name}...]`;
  return argument.required ? `<${argument.name}>` : `[${argument.name}]`;
}

function flags(name: string, spec: OptionSpec): string {
  const short = spec.short === undefined ? "    " : `-${spec.short}, `;
  return `${short}--${name}${spec.type === "switch" ? "" : ` <${spec.value}>`}`;
}

function optionSummary(spec: OptionSpec): string {
  const notes: string[] = [];
  if (spec.type === "text" && spec.choices !== undefined) notes.push(`one of ${spec.choices.join(", ")}`);
  if (spec.type === "integer" && spec.max !== 65535) notes.push(`${spec.min} to ${spec.max}`);
  if ("default" in spec && spec.default !== undefined) notes.push(`default ${spec.default}`);
  return notes.length === 0 ? spec.summary : `${spec.summary} (${notes.join("; ")})`;
}

/** Two columns; the second wraps within the width. */
function columns(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([first]) => first.length));
  return rows.flatMap(([first, second]) =>
    wrap(second, WIDTH - left - 4).map((line, index) => `  ${(index === 0 ? first : "").padEnd(left)}  ${line}`),
  );
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
