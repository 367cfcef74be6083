/** Conditions, and their messages. */
import { formatPath, type Path } from "../../../base/paths.ts";
import { fullText } from "../../../translation/problems/diagnostics.ts";
import { type Finding, isNote, type LintCode, lintTexts } from "../../../translation/problems/lint-table.ts";
import type { ConditionDraft } from "./model.ts";

export function isTrue(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "True", reason, message };
}

export function isFalse(type: string, reason: string, message: string): ConditionDraft {
  return { type, status: "False", reason, message };
}

/** Characters; the API server allows 32768, too many to read. */
const MAX_MESSAGE = 2000;

/** Joins messages, each once. Those that would make the text too long are only counted. */
export function joined(messages: readonly string[]): string {
  const [first = "", ...others] = new Set(messages);
  let text = first.slice(0, MAX_MESSAGE);
  for (const [i, message] of others.entries()) {
    if (text.length + message.length > MAX_MESSAGE) return `${text}; and ${others.length - i} more`;
    text += `; ${message}`;
  }
  return text;
}

/** Something about one field of an object that is valid and most likely not intended. */
export interface LintFinding {
  readonly code: LintCode;
  /** With the path of the field and the remedy. */
  readonly text: string;
}

/** The finding at a path of an object, as its status says it; none for a note, or where something else says the same. */
export function lintFindings(path: Path, finding: Finding): readonly LintFinding[] {
  const texts = isNote(finding) ? undefined : lintTexts(finding, "objects");
  return texts === undefined ? [] : [{ code: finding.code, text: `${formatPath(path)}: ${fullText(texts)}` }];
}

/** A condition of tracegate's own, set only if there are findings. Its reason is the first code, such as `LenientAuthentication`. */
export function findingsCondition(findings: readonly LintFinding[]): readonly ConditionDraft[] {
  const [first] = findings;
  if (first === undefined) return [];
  const text = joined(findings.map((each) => `${each.text} [${each.code}]`));
  return [isTrue("tracegate.dev/Findings", pascalCase(first.code), text)];
}

/** A reason of a condition has no hyphens. */
function pascalCase(code: string): string {
  return code.replace(/(?:^|-)([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}
