import type { LintCode } from "./lint-table.ts";

/** One problem of a configuration: what is wrong, where, and how to correct it. */
export interface Diagnostic {
  /** A note is about valid settings that often have another effect than intended. */
  readonly severity: "error" | "warning" | "note";
  /** File name, or its substitute, such as `--config`. */
  readonly file: string;
  /** 1-based, in the text before variables were filled in; 0 when the problem has no place there. */
  readonly line: number;
  readonly column: number;
  /** Such as `binds[0].listeners[1].routes[2]`; `` for the whole file. */
  readonly path: string;
  readonly message: string;
  /** What to do about it, unless the message says it. */
  readonly remedy?: string;
  /** Of a finding about a valid configuration. */
  readonly lint?: LintCode;
  /** Places that explain a finding. */
  readonly related?: readonly RelatedPlace[];
  readonly expected?: string;
  /** The value or name that was probably intended. */
  readonly suggestion?: string;
  /** A digest of a certificate that has expired or is not valid yet, by `digestOfPem`: a reload may keep it in effect, but not introduce it. */
  readonly invalidCertificate?: string;
  /** The line of the text, for people; absent when it might show a secret. */
  readonly source?: string;
}

/** A place that explains a finding, such as a route that wins instead. */
export interface RelatedPlace {
  /** Absent: the file of the finding. */
  readonly file?: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
}

/** The problems with warnings as errors, for `--strict`. */
export function strictly(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return diagnostics.map((each) => (each.severity === "warning" ? { ...each, severity: "error" } : each));
}

/** Most problems to print: more would hide the first ones, which often cause the others. */
const MAX_SHOWN = 100;

/** The problems for people: `file:line:column: error: message`, the line with a caret, and the hint. */
export function formatDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const shown = diagnostics.slice(0, MAX_SHOWN).map(format);
  if (diagnostics.length > MAX_SHOWN) shown.push(`and ${diagnostics.length - MAX_SHOWN} more\n`);
  return shown.join("\n");
}

function format(diagnostic: Diagnostic): string {
  const { file, line, column, severity, path, expected, suggestion, source, lint, related = [] } = diagnostic;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  let text = `${place}: ${severity}: ${path === "" ? "" : `${path}: `}${fullText(diagnostic)}`;
  if (lint !== undefined) text += ` [${lint}]`;
  if (expected !== undefined) text += `; expected ${expected}`;
  if (suggestion !== undefined) text += `; did you mean ${JSON.stringify(suggestion)}?`;
  const others = related
    .map((each) => `  ${each.file ?? file}:${each.line}:${each.column}: ${each.path}: ${each.message}\n`)
    .join("");
  if (source === undefined || line === 0) return `${text}\n${others}`;
  const indent = source.slice(0, column - 1).replace(/[^\t]/g, " ");
  return `${text}\n  ${source}\n  ${indent}^\n${others}`;
}

/** What is wrong, and what to do about it. */
export function fullText({ message, remedy }: Pick<Diagnostic, "message" | "remedy">): string {
  return remedy === undefined ? message : `${message}; ${remedy}`;
}
