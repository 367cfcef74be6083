import { readFile } from "node:fs/promises";
import { text as readText } from "node:stream/consumers";
import { parse, stringify } from "yaml";
import { fieldsOf, isObject } from "../../base/fields.ts";
import { fileProblem } from "../../base/file-problem.ts";
import { type Context, write, writeJson } from "../runner/context.ts";
import { CliError } from "../runner/errors.ts";
import { OUTPUT_OPTION } from "../runner/output-option.ts";

/** Keys of dumps; every version writes at least one of them. */
const SECTIONS = new Set(["binds", "listeners", "routes", "backends", "services", "workloads", "policies", "config"]);

/** The configuration dump in a file of JSON or YAML; `-` is standard input. @throws CliError */
export async function readDump(file: string, context: Context): Promise<unknown> {
  const name = file === "-" ? "standard input" : file;
  try {
    const content = file === "-" ? await readText(context.stdin) : await readFile(file, "utf8");
    const dump: unknown = parseDump(content);
    if (isDump(dump)) return dump;
  } catch (error) {
    throw new CliError("failure", `failed to read config dump file ${name}: ${fileProblem(error)}`, { cause: error });
  }
  throw new CliError("failure", `failed to read config dump file ${name}: it contains no configuration dump`, {
    hint: `save one with: tgctl proxy config all -o json > dump.json`,
  });
}

/** Whether a value is a dump of any version, or an empty object. */
function isDump(value: unknown): boolean {
  if (!isObject(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 0 || keys.some((key) => SECTIONS.has(key));
}

/** JSON is YAML too, but a hundred times faster to read as JSON, which is what proxies write. */
function parseDump(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    if (content.trimStart().startsWith("{")) throw error;
  }
  try {
    return parse(content, { logLevel: "silent" });
  } catch {
    // An error of the YAML parser about a file of another format would not help.
    return undefined;
  }
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The values of an array or of an object keyed by id. */
export function values(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : Object.values(fieldsOf(value));
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The only key of a tagged union such as `{exact: "/x"}` with its value; `undefined` for anything else. */
export function tagged(value: unknown): readonly [string, unknown] | undefined {
  if (typeof value === "string") return [value, null];
  return Object.entries(fieldsOf(value))[0];
}

const FORMATS = ["table", "json", "yaml"] as const;

/** `-o, --output` of the commands that print a dump or a part of it. */
export const DUMP_OUTPUT_OPTION = {
  ...OUTPUT_OPTION,
  default: "table",
  // `short` is what older clients call their default.
  choices: [...FORMATS, "short"],
  summary: "Output format: table and short are readable, json and yaml are complete",
} as const;

/** Prints a value in the format; `table` makes the table. `--json` takes precedence over a table. */
export async function print(value: unknown, format: string, context: Context, table: () => string): Promise<void> {
  if (format === "json" || (context.json && format !== "yaml")) return writeJson(context, value);
  await write(context.stdout, format === "yaml" ? stringify(value, { lineWidth: 0 }) : table());
}

/** Rows as columns two spaces apart, without trailing spaces; the first row is the header. Each line ends in a newline. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => `${line.trimEnd()}\n`)
    .join("");
}
