import { stringify } from "yaml";
import { type Context, write, writeJson } from "../context.ts";

const FORMATS = ["table", "json", "yaml"] as const;

/** `-o, --output` of the commands that print a dump or a part of it. */
export const OUTPUT_OPTION = {
  type: "text",
  short: "o",
  value: "format",
  default: "table",
  // `short` is what older clients call their default.
  choices: [...FORMATS, "short"],
  refuse: (value: string) => `output format "${value}" not supported`,
  summary: "How to print: table and short are for people, json and yaml for programs",
} as const;

/** Prints a value as the format asks, `table` by its own function. `--json` wins over a table. */
export async function print(value: unknown, format: string, context: Context, table: () => string): Promise<void> {
  if (format === "json" || (context.json && format !== "yaml")) return writeJson(context, value);
  await write(context.stdout, format === "yaml" ? stringify(value, { lineWidth: 0 }) : table());
}
