import type { Path } from "../../base/paths.ts";
import { type Found, isNote, type LintCode, lintTexts } from "./lint-table.ts";
import type { Report } from "./problem.ts";

/** Reports a finding at `path`. */
export function lint<Code extends LintCode>(report: Report, path: Path, code: Code, ...found: Found<Code>): void {
  const severity = isNote(code, ...found) ? { note: true } : { warning: true };
  report(path, { ...lintTexts(code, ...found), ...severity, advice: true, lint: code });
}
