import { messageOf } from "../base/errors.ts";
import { type Context, write, writeJson } from "../cli/runner/context.ts";
import { CliError } from "../cli/runner/errors.ts";
import { checkConfig } from "../config/check.ts";
import type { ConfigSource, LoadResult } from "../config/load.ts";
import { readText } from "../config/parse/inputs.ts";
import { readCases } from "../rehearsal/cases/read-cases.ts";
import { runCases, type Verdict } from "../rehearsal/cases/run-cases.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import { caseText, hasPassed, junitReport, renderReport, summaryText } from "./check-report.ts";
import { rehearse } from "./explain.ts";

export type CheckFormat = "text" | "json" | "junit";

interface CheckOptions {
  /** Default false. */
  readonly offline?: boolean;
  /** A file of cases. */
  readonly expect?: string | undefined;
  /** Default text. */
  readonly output?: CheckFormat | undefined;
}

/**
 * Prints the problems of a configuration and, if it is valid, how its cases turn out. Resolves with the exit code: 1 if the configuration or
 * the cases are not valid, or a case fails.
 */
export async function check(
  source: ConfigSource,
  { offline = false, expect, output = "text" }: CheckOptions,
  context: Context,
): Promise<number> {
  const print = (text: string): Promise<void> => write(context.stdout, text);
  const { report, loaded } = await checkConfig(source, context.env, { offline });
  if (expect === undefined || !loaded.ok) {
    await (output === "json" ? writeJson(context, report) : print(renderReport(report)));
    return report.ok ? 0 : 1;
  }
  const cases = casesOf(expect, loaded, context);
  if ("diagnostics" in cases) {
    const invalid = { ok: false, diagnostics: [...report.diagnostics, ...cases.diagnostics] };
    await (output === "json" ? writeJson(context, invalid) : print(renderReport(invalid)));
    return 1;
  }
  if (output === "text") await print(renderReport(report));
  const rehearsal = rehearse(loaded, context.env);
  const verdicts: Verdict[] = [];
  try {
    for await (const verdict of runCases(cases, rehearsal, sensitiveHeaders(loaded.config.sensitiveHeaders))) {
      verdicts.push(verdict);
      if (output === "text") await print(caseText(cases.file, verdict));
    }
  } finally {
    rehearsal.close();
  }
  const ok = verdicts.every(hasPassed);
  if (output === "text") await print(summaryText(verdicts));
  else if (output === "junit") await print(junitReport(cases.file, verdicts));
  else await writeJson(context, { ...report, ok, cases: verdicts.map(verdictJson) });
  return ok ? 0 : 1;
}

function casesOf(file: string, { ir }: Extract<LoadResult, { ok: true }>, { env }: Context) {
  let text: string;
  try {
    text = readText(file);
  } catch (error) {
    throw new CliError("failure", `cannot read ${file}: ${messageOf(error)}`);
  }
  return readCases(file, text, ir, env);
}

function verdictJson(verdict: Verdict): object {
  const {
    case: { name, line, column },
    failures,
    open,
    problem,
  } = verdict;
  return { name, line, column, ok: hasPassed(verdict), failures, open: Object.fromEntries(open), problem };
}
