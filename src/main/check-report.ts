/** What `tracegate check` prints: problems, and the verdicts on cases, as a test run does or as JUnit's XML. */
import { counted } from "../base/counted.ts";
import type { Supply } from "../cel/index.ts";
import type { CheckReport } from "../config/check.ts";
import type { Impact } from "../impact/impact.ts";
import { ASSUMPTIONS, alternatives, isAssumption, textOf, withoutPlace } from "../rehearsal/assumptions.ts";
import type { Failure, Verdict } from "../rehearsal/cases/run-cases.ts";
import { givenText } from "../report/given-text.ts";
import { stepLines } from "../report/step-lines.ts";
import { type Diagnostic, formatDiagnostics, fullText } from "../translation/problems/diagnostics.ts";

/** What `-o json` prints; schema/check.json describes it. */
export interface CheckOutput extends CheckReport {
  /** Of `--expect`. */
  readonly cases?: readonly CaseResult[];
  /** Of `--impact`. */
  readonly impact?: Impact;
}

/** A verdict as JSON. */
export interface CaseResult extends Pick<Verdict, "failures" | "problem"> {
  readonly name: string;
  readonly line: number;
  readonly column: number;
  readonly ok: boolean;
  readonly open: Readonly<Record<string, readonly unknown[]>>;
}

/** The report with the results of cases. `ok`: everything is as it should be. */
export function jsonReport(report: CheckReport, ok: boolean, verdicts: readonly Verdict[]): CheckOutput {
  const cases = verdicts.map((verdict): CaseResult => {
    const { name, line, column } = verdict.case;
    const { failures, open, problem } = verdict;
    const result = { name, line, column, ok: hasPassed(verdict), failures, open: Object.fromEntries(open) };
    return { ...result, ...(problem !== undefined && { problem }) };
  });
  return { ...report, ok, cases };
}

/** Every diagnostic with its position; for a valid configuration also the number of its objects. */
export function renderReport({ ok, diagnostics, summary, startOnly, notFetched = [] }: CheckReport): string {
  const unseen = notFetched.map((url) => `note: not fetched and not checked, because of --offline: ${url}\n`).join("");
  const problems = formatDiagnostics(diagnostics) + unseen;
  if (!ok || summary === undefined) {
    const errors = diagnostics.filter((each) => each.severity === "error").length;
    return `${problems}${counted(errors, "problem")}\n`;
  }
  const { binds, listeners, routes, tcpRoutes, backends } = summary;
  const counts = [
    counted(binds, "bind"),
    counted(listeners, "listener"),
    counted(routes, "route"),
    ...(tcpRoutes > 0 ? [counted(tcpRoutes, "TCP route")] : []),
    counted(backends, "backend"),
  ];
  const note =
    startOnly === undefined ? "" : `note: read only at startup, so a change needs a restart: ${startOnly.join(", ")}\n`;
  return `${problems}valid: ${counts.join(", ")}\n${note}`;
}

/** The problems as commands of GitHub Actions, which shows them at their lines. */
export function annotations({ diagnostics }: CheckReport): string {
  return diagnostics
    .map((each) => annotation(each.severity, each, each.lint ?? "configuration", withPath(each)))
    .join("");
}

/** The same of a case that fails; nothing for one that passes. */
export function caseAnnotation(file: string, verdict: Verdict): string {
  if (hasPassed(verdict)) return "";
  const place = verdict.problem ?? verdict.case;
  return annotation("error", { ...place, file }, verdict.case.name, reasons(verdict).join("\n"));
}

const COMMANDS = { error: "error", warning: "warning", note: "notice" } as const;

function annotation(
  severity: Diagnostic["severity"],
  { file, line, column }: Pick<Diagnostic, "file" | "line" | "column">,
  title: string,
  text: string,
): string {
  const place = line === 0 ? "" : `,line=${line},col=${column}`;
  return `::${COMMANDS[severity]} file=${property(file)}${place},title=${property(title)}::${data(text)}\n`;
}

/** Text of a command: line breaks would end it. */
function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

function withPath(diagnostic: Diagnostic): string {
  return `${diagnostic.path === "" ? "" : `${diagnostic.path}: `}${fullText(diagnostic)}`;
}

/** A line for a case that passes; below one that fails what was expected, what came and why. */
export function caseText(file: string, verdict: Verdict): string {
  const { name } = verdict.case;
  if (hasPassed(verdict)) return `✓ ${name}\n`;
  const { line, column } = verdict.problem ?? verdict.case;
  return [`✗ ${name}  ${file}:${line}:${column}`, ...reasons(verdict).map((each) => `    ${each}`), ""].join("\n");
}

/** `3 cases: 2 passed, 1 failed`. */
export function summaryText(verdicts: readonly Verdict[]): string {
  const failed = verdicts.filter((verdict) => !hasPassed(verdict)).length;
  const counts = [`${verdicts.length - failed} passed`, ...(failed > 0 ? [`${failed} failed`] : [])];
  return `${counted(verdicts.length, "case")}: ${counts.join(", ")}\n`;
}

export function hasPassed({ failures, problem }: Verdict): boolean {
  return failures.length === 0 && problem === undefined;
}

/** The cases as JUnit's XML, which CI systems show as test results. */
export function junitReport(file: string, verdicts: readonly Verdict[]): string {
  const failed = verdicts.filter((verdict) => !hasPassed(verdict)).length;
  const seconds = (ms: number): string => (ms / 1000).toFixed(3);
  const time = seconds(verdicts.reduce((sum, { durationMs }) => sum + durationMs, 0));
  const suite = `name=${xml(file)} tests="${verdicts.length}" failures="${failed}" errors="0" skipped="0" time="${time}"`;
  const cases = verdicts.flatMap((verdict) => {
    const { name, line } = verdict.case;
    const head = `    <testcase name=${xml(name)} classname=${xml(file)} file=${xml(file)} line="${line}" time="${seconds(verdict.durationMs)}"`;
    if (hasPassed(verdict)) return [`${head}/>`];
    const [first = "", ...rest] = reasons(verdict);
    const text = xml([first, ...rest].join("\n")).slice(1, -1);
    return [`${head}>`, `      <failure message=${xml(first)}>${text}</failure>`, "    </testcase>"];
  });
  const lines = [`<testsuites ${suite}>`, `  <testsuite ${suite}>`, ...cases, "  </testsuite>", "</testsuites>"];
  return `<?xml version="1.0" encoding="UTF-8"?>\n${lines.join("\n")}\n`;
}

function reasons({ failures, open, needs, problem }: Verdict): string[] {
  const [first] = failures;
  const isCertain = open.size === 0;
  const shown = isCertain && first !== undefined ? [first] : failures;
  const unknown = [
    ...[...open].flatMap(([name, values]) =>
      isAssumption(withoutPlace(name)) ? `it depends on ${name}, so write assume: ${waysOf(name, values)}` : [],
    ),
    ...(isCertain ? [] : needs).map(
      ({ what, supply }) =>
        `it depends on what is not known: ${[what, ...(supply === undefined ? [] : [inCase(supply)])].join("; ")}`,
    ),
  ];
  return [
    ...(problem === undefined ? [] : [problem.message]),
    ...unknown,
    ...shown.flatMap((failure) => failureLines(failure, isCertain ? [] : [...open.keys()])),
  ];
}

function failureLines({ given, differences, why }: Failure, open: readonly string[]): string[] {
  const condition = open.flatMap((name) => (name in given ? [givenText(name, textOf(given[name]))] : []));
  const lines = [
    ...differences.map(({ field, expected, actual }) => `${field}: expected ${shown(expected)}, got ${shown(actual)}`),
    ...stepLines(why),
  ];
  return condition.length === 0 ? lines : [`if ${condition.join(", ")}:`, ...lines.map((line) => `    ${line}`)];
}

/** What to write in a case so that something becomes known. */
function inCase(supply: Supply): string {
  switch (supply.kind) {
    case "field":
      return `write request: {headers: {${supply.name ?? "name"}: …}}`;
    case "parameter":
      return `write request: {url: …?${supply.name ?? "name"}=…}`;
    case "url":
      return "write request: {url: …} with them";
    case "body":
    case "source":
      return `write request: {${supply.kind}: …}`;
    case "assumption":
      return `write assume: ${alternatives(supply.examples.map((value) => `{${supply.name}: ${value}}`))}`;
    case "request":
    case "record":
    case "trace":
    case "setting":
      return "a case cannot say it";
  }
}

/** How a case assumes something: `{extAuthz: allow}`, or what else is possible. */
function waysOf(name: string, values: readonly unknown[]): string {
  const what = withoutPlace(name);
  const ways = isAssumption(what) && what !== "backend" ? ASSUMPTIONS[what].values : values.map(textOf);
  return ways.map((way) => `{${name}: ${way}}`).join(" or ");
}

function shown(value: string | number | null): string {
  return value === null ? "none" : typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** An attribute's value with its quotes; characters that XML cannot hold are left out. */
function xml(text: string): string {
  const possible = text.replace(/(?![\t\n\r])\p{Cc}|[\ufffe\uffff]/gu, "");
  const escaped = possible.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `"${escaped.replaceAll('"', "&quot;")}"`;
}
