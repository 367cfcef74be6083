import { isObject } from "../src/base/fields.ts";

/** A value of JSON with a line for each field and item, as YAML has it, so that a difference has the lines that changed and no others. */
export function valueText(value: unknown): string {
  return linesOf(value).join("\n");
}

function linesOf(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0)
    return value.flatMap((item) => linesOf(item).map((line, i) => `${i === 0 ? "-" : " "} ${line}`));
  if (!isObject(value) || Object.keys(value).length === 0) return [scalarText(value)];
  return Object.entries(value).flatMap(([name, field]) => {
    if (field === undefined) return [];
    const [first = "", ...rest] = linesOf(field);
    const isBlock = typeof field === "object" && field !== null && Object.keys(field).length > 0;
    return isBlock ? [`${name}:`, ...[first, ...rest].map((line) => `  ${line}`)] : [`${name}: ${first}`];
  });
}

/** A text stands without quotes unless it could be read as something else. */
function scalarText(value: unknown): string {
  const json = JSON.stringify(value) ?? "null";
  if (typeof value !== "string" || value === "" || json.length !== value.length + 2) return json;
  return /^\s|\s$|^[-[{"'#&*!|>%@`?]|: |^(?:true|false|null)$|^[\d.+-]+$/.test(value) ? json : value;
}
