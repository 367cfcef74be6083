import type { Path } from "../../base/paths.ts";
import { type Finding, type Found, isNote, type LintCode, lintTexts } from "./lint-table.ts";
import type { Problem, Report } from "./problem.ts";

/** Reports a finding at `path`. */
export function lint<Code extends LintCode>(report: Report, path: Path, code: Code, ...found: Found<Code>): void {
  report(path, problemOf({ code, found } as Finding));
}

/** A finding with its texts for authors of files; `Problem.lint` has those for others. */
export function problemOf(finding: Finding, related: Problem["related"] = []): Problem {
  const severity = isNote(finding) ? { note: true } : { warning: true };
  return { ...lintTexts(finding, "file"), ...severity, advice: true, lint: finding, related };
}
