import { counted } from "../base/counted.ts";
import type { Fields } from "../base/fields.ts";
import { formatOrigin } from "../base/origin.ts";
import type { TraceEvent } from "../trace/events.ts";
import { type Step, stepsOf } from "../trace/steps.ts";
import { harmless } from "./text.ts";

/** A line of a tree. */
export interface StepLine {
  /** 0 is the outermost level. */
  readonly depth: number;
  /** The result of the step that begins here; absent in further lines of a step. */
  readonly result?: Step["result"];
  readonly text: string;
  /** Where the setting that decided is written. */
  readonly place?: string;
}

export const SIGNS = { yes: "✓", no: "✗", unknown: "?", skipped: "–", notReached: "–" } as const;

/** The columns by which each level is indented. */
export const INDENT = 4;

/** The steps as lines of a tree. */
export function linesOf(steps: readonly Step[], depth = 0): StepLine[] {
  return steps.flatMap((step, i) => {
    const { kind, result, values = [], steps: inner, omitted } = step;
    const [first = "", ...rest] = (step.reason ?? (result === "notReached" ? "not reached" : "")).split("\n");
    const before = kind === "request" ? steps.slice(0, i).findLast((each) => each.kind === "request") : undefined;
    const { headers, note } = before === undefined ? { headers: step.headers ?? {}, note: "" } : changes(before, step);
    const place = placeOf(step);
    const isValue = kind === "rule" || kind === "expression";
    const reasons = [first, note].filter((part) => part !== "").join("  ");
    const text = reasons === "" ? titleOf(step) : `${titleOf(step)}${isValue ? " → " : "  "}${reasons}`;
    return [
      { depth, result, text, ...(place !== undefined && { place }) },
      ...[
        ...rest,
        ...values.map(({ text, value, error }) => `${inline(text)} → ${error ?? JSON.stringify(value)}`),
        ...Object.entries(headers).map(([field, value]) => `${field}: ${value}`),
      ].map((text) => ({ depth: depth + 1, text })),
      ...linesOf(inner, depth + 1),
      ...(omitted === undefined ? [] : [{ depth: depth + 1, text: `and ${counted(omitted, "more route")}` }]),
    ];
  });
}

/** The steps as text, for pipes and files. */
export function stepLines(steps: readonly Step[]): string[] {
  return linesOf(steps).map(plainLine);
}

export function plainLine({ depth, result, text, place }: StepLine): string {
  const sign = result === undefined ? "" : `${SIGNS[result]} `;
  return `${" ".repeat(INDENT * depth)}${sign}${text}${place === undefined ? "" : `  ${place}`}`;
}

/** The events of a trace as lines of a tree; a remark if the events of another version cannot be shown as one. */
export function treeLines(events: readonly Fields[]): StepLine[] {
  try {
    const lines = linesOf(stepsOf(events as unknown as readonly TraceEvent[]));
    return lines.map((line) => ({ ...line, text: harmless(line.text) }));
  } catch {
    return [{ depth: 0, text: "These events cannot be shown as a tree: the proxy has another version." }];
  }
}

/** The title of a step. Routes of Kubernetes are called by their object. */
export function titleOf({ kind, name, origin }: Step): string {
  return kind === "route" && origin?.object !== undefined ? name : `${kind} ${inline(name)}`;
}

function placeOf({ kind, origin }: Step): string | undefined {
  return origin === undefined || (kind === "route" && origin.object !== undefined) ? undefined : formatOrigin(origin);
}

/** The header fields in which an attempt differs from the previous one. */
function changes(
  { name: oldName, headers: old = {} }: Step,
  { name, headers: all = {} }: Step,
): { readonly headers: Readonly<Record<string, string>>; readonly note: string } {
  const headers = Object.fromEntries(Object.entries(all).filter(([field, value]) => old[field] !== value));
  const gone = Object.keys(old).filter((field) => !(field in all));
  if (oldName !== name) return { headers: all, note: "" };
  const without = gone.length === 0 ? "" : ` without ${gone.join(", ")}`;
  return { headers, note: `again${without}${Object.keys(headers).length === 0 ? "" : " with"}` };
}

/** On one line. */
function inline(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
