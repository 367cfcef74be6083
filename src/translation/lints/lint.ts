import type { Path } from "../../base/paths.ts";
import type { Report } from "../problems/problem.ts";
import { type Found, isNote, type LintCode, lintTexts } from "./lint-table.ts";

/** A place that explains a finding, such as the route that shadows another. */
export interface Related {
  readonly path: Path;
  /** What it is, such as `wins instead`. */
  readonly message: string;
}

/** Reports a finding at `path`. */
export function lint<Code extends LintCode>(report: Report, path: Path, code: Code, ...found: Found<Code>): void {
  lintWith([], report, path, code, ...found);
}

/** The same, with the places that explain it. */
export function lintWith<Code extends LintCode>(
  related: readonly Related[],
  report: Report,
  path: Path,
  code: Code,
  ...found: Found<Code>
): void {
  const severity = isNote(code, ...found) ? { note: true } : { warning: true };
  report(path, { ...lintTexts(code, ...found), ...severity, advice: true, lint: code, related });
}
