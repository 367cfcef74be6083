import {
  type Command,
  type Group,
  isGroup,
  type Node,
  type OptionSpec,
  optionsOf,
  shortcutsOf,
} from "./define-command.ts";
import { EXIT_CODES } from "./errors.ts";

const WIDTH = 100;

/** The environment variables that `tgctl` reads. */
const ENVIRONMENT: readonly (readonly [name: string, meaning: string])[] = [
  ["TGCTL_ADMIN", "Address of the admin server, host:port or unix:/path; default localhost:15000"],
  ["NO_COLOR", "When set, the full-screen view uses no colors"],
];

/** The help of a command or group. `path` is every name before it, `tgctl` first. */
export function renderHelp(node: Node, path: readonly string[]): string {
  return isGroup(node) ? groupHelp(node, path) : commandHelp(node, path);
}

function commandHelp(command: Command, path: readonly string[]): string {
  const sections = [
    [command.summary],
    ...(command.description ?? []).map((paragraph) => wrap(paragraph, WIDTH)),
    ["Usage:", `  ${usageLine(command, path)}`],
  ];
  if (command.aliases !== undefined) sections.push(["Aliases:", `  ${command.aliases.join(", ")}`]);
  const operands: [string, string][] = [];
  if (command.argument) operands.push([operand(command.argument), command.argument.summary]);
  if (command.rest) operands.push([`-- ${command.rest.name}`, command.rest.summary]);
  if (operands.length > 0) sections.push(["Arguments:", ...columns(operands)]);
  sections.push([
    "Options:",
    ...columns(optionsOf(command).map(([name, spec]) => [flags(name, spec), optionSummary(spec)])),
  ]);
  if (command.examples.length > 0) {
    sections.push(["Examples:", ...command.examples.flatMap(({ does, run }) => [`  # ${does}`, `  tgctl ${run}`])]);
  }
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function groupHelp(group: Group, path: readonly string[]): string {
  const name = [...path, group.name].join(" ");
  const sections = [
    [group.summary],
    ...(group.description ?? []).map((paragraph) => wrap(paragraph, WIDTH)),
    ["Usage:", `  ${name} ${group.fallback === undefined ? "<command>" : "[command]"} [options]`],
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
  if (path.length === 0) {
    sections.push(["Options:", "  -V, --version  Print the version", "  -h, --help     Show this help"]);
    sections.push(["Environment:", ...columns(ENVIRONMENT)]);
    sections.push([
      "Exit codes:",
      ...columns(EXIT_CODES.map(({ code, meaning }) => [String(code).padStart(3), meaning])),
    ]);
  }
  sections.push([`Run "${name} <command> --help" for the options and examples of a command.`]);
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
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
