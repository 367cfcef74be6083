import type { Fields } from "../base/fields.ts";
import { formatOrigin } from "../base/origin.ts";
import type { TraceEvent } from "../trace/events.ts";
import { type Step, stepsOf } from "../trace/steps.ts";
import { harmless } from "./text.ts";

const SIGNS = { yes: "✓", no: "✗", unknown: "?", skipped: "–", notReached: "–" } as const;

/** The steps as lines of text, indented by four characters for each level. */
export function stepLines(steps: readonly Step[], indent = ""): string[] {
  return steps.flatMap((step) => {
    const { result, reason = "", values = [], headers = {}, steps: inner } = step;
    const [first = "", ...rest] = reason.split("\n");
    return [
      `${indent}${[`${SIGNS[result]} ${titleOf(step)}`, first, placeOf(step)].filter((part) => part !== "").join("  ")}`,
      ...rest.map((line) => `${indent}    ${line}`),
      ...values.map(({ text, value, error }) => `${indent}    ${inline(text)} → ${error ?? JSON.stringify(value)}`),
      ...Object.entries(headers).map(([field, value]) => `${indent}    ${field}: ${value}`),
      ...stepLines(inner, `${indent}    `),
    ];
  });
}

/** Routes of Kubernetes are called by their object. */
function titleOf({ kind, name, origin }: Step): string {
  return kind === "route" && origin?.object !== undefined ? name : `${kind} ${name}`;
}

function placeOf({ kind, origin }: Step): string {
  return origin === undefined || (kind === "route" && origin.object !== undefined) ? "" : formatOrigin(origin);
}

/** The events of a trace as such lines; a remark if those of another version cannot be shown so. */
export function treeLines(events: readonly Fields[]): string[] {
  try {
    return stepLines(stepsOf(events as unknown as readonly TraceEvent[])).map(harmless);
  } catch {
    return ["These events cannot be shown as a tree: the proxy has another version."];
  }
}

/** On one line. */
function inline(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
