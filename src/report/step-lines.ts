import type { Fields } from "../base/fields.ts";
import { formatOrigin } from "../base/origin.ts";
import type { TraceEvent } from "../trace/events.ts";
import { type Step, stepsOf } from "../trace/steps.ts";
import { shortRoute } from "./fields.ts";
import { harmless } from "./text.ts";

const SIGNS = { yes: "✓", no: "✗", unknown: "?", skipped: "–", notReached: "–" } as const;

/** The steps as lines of text, indented by four characters for each level; routes have short names. */
export function stepLines(steps: readonly Step[], indent = ""): string[] {
  const keys = routesIn(steps);
  const short = new Map(keys.map((key) => [key, shortRoute(key, keys)]));
  const named = (text: string): string => {
    let result = text;
    for (const [key, name] of short) result = result.replaceAll(key, () => name);
    return result;
  };
  return linesOf(steps, indent, named);
}

/** The events of a trace as such lines; a remark if those of another version cannot be shown so. */
export function treeLines(events: readonly Fields[]): string[] {
  try {
    return stepLines(stepsOf(events as unknown as readonly TraceEvent[])).map(harmless);
  } catch {
    return ["These events cannot be shown as a tree: the proxy has another version."];
  }
}

function linesOf(steps: readonly Step[], indent: string, named: (text: string) => string): string[] {
  return steps.flatMap(({ kind, name, result, reason = "", values = [], origin, headers = {}, steps: inner }) => {
    const [first = "", ...rest] = reason.split("\n");
    const title = kind === "route" ? named(name) : name;
    const parts = [`${SIGNS[result]} ${kind} ${title}`, named(first), origin === undefined ? "" : formatOrigin(origin)];
    return [
      `${indent}${parts.filter((part) => part !== "").join("  ")}`,
      ...rest.map((line) => `${indent}    ${line}`),
      ...values.map(({ text, value, error }) => `${indent}    ${inline(text)} → ${error ?? JSON.stringify(value)}`),
      ...Object.entries(headers).map(([field, value]) => `${indent}    ${field}: ${value}`),
      ...linesOf(inner, `${indent}    `, named),
    ];
  });
}

/** On one line. */
function inline(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}

function routesIn(steps: readonly Step[]): string[] {
  return steps.flatMap(({ kind, name, steps: inner }) => [
    ...(kind === "route" && name !== "none" ? [name] : []),
    ...routesIn(inner),
  ]);
}
