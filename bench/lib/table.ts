import type { Limits, Measure } from "./types.ts";

const HEAD = ["measure", "tracegate", "peers", "ratio or value", "must", "aim", "verdict"];

/** A markdown table of the measures, columns padded so that it reads well in a terminal too. */
export function markdownTable(measures: readonly Measure[]): string {
  const rows = [HEAD, ...measures.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}

/** "aim met", "met" or "missed"; empty for information. */
export function verdictOf({ value, limits, verdict }: Measure): string {
  if (verdict !== undefined) return verdict;
  if (!isKnown(value) || limits === undefined) return "";
  if (reaches(value, limits.aim, limits)) return "aim met";
  return reaches(value, limits.must, limits) ? "met" : "missed";
}

function cells(measure: Measure): string[] {
  const { value, limits, unit = "" } = measure;
  const sign = limits?.better === "more" ? "≥" : "≤";
  const limit = (target: number | undefined): string =>
    target === undefined ? "" : `${sign} ${target} ${unit}`.trim();
  return [
    measure.measure,
    measure.tracegate,
    measure.peers,
    isKnown(value) ? `${number(value)} ${unit}`.trim() : "",
    limit(limits?.must),
    limit(limits?.aim),
    verdictOf(measure),
  ];
}

/** Two decimals below ten, else one, and none from 1,000 on. */
export function number(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(Math.abs(value) < 10 ? 2 : 1);
}

function reaches(value: number, target: number, { better }: Limits): boolean {
  return better === "less" ? value <= target : value >= target;
}

/** The ratio to a proxy that is not installed is NaN. */
function isKnown(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value);
}
