import { AdminClient, AdminClientError } from "../admin/client/client.ts";
import { messageOf } from "../base/errors.ts";
import type { Locate } from "../base/origin.ts";
import { badChange } from "../cli/commands/proxy/impact.ts";
import { type Context, write, writeJson } from "../cli/runner/context.ts";
import { CliError } from "../cli/runner/errors.ts";
import { checkConfig, strictReport } from "../config/check.ts";
import { type ConfigSource, type LoadResult, locating, rereadable, textsOf } from "../config/load.ts";
import { InputReader, readText } from "../config/parse/inputs.ts";
import { type Impact, impactOf } from "../impact/impact.ts";
import { changesIn, impactText } from "../impact/impact-text.ts";
import { readSampleFile, type SampleFile } from "../recorder/sample-file.ts";
import { readCases } from "../rehearsal/cases/read-cases.ts";
import { runCases, type Verdict } from "../rehearsal/cases/run-cases.ts";
import { placed } from "../rehearsal/explanation.ts";
import { sensitiveHeaders } from "../trace/redaction.ts";
import type { Diagnostic } from "../translation/problems/diagnostics.ts";
import {
  annotations,
  caseAnnotation,
  caseText,
  hasPassed,
  jsonReport,
  junitReport,
  renderReport,
  summaryText,
} from "./check-report.ts";
import { rehearse, type ValidConfiguration, validConfiguration } from "./explain.ts";
import { differenceBetween, fingerprintOf } from "./fingerprint.ts";

export type CheckFormat = "text" | "json" | "junit" | "github";

interface ImpactOptions {
  /** A file of samples, or the URL of the gateway that has them. */
  readonly samples: string;
  /** The files of the configuration before the change; none: the one in effect in the gateway. */
  readonly before: readonly string[];
  /** Changes that make the check fail: of FAIL_ON. */
  readonly failOn: readonly string[];
}

interface CheckOptions {
  /** Default false. */
  readonly offline?: boolean;
  /** A file of cases. */
  readonly expect?: string | undefined;
  readonly impact?: ImpactOptions | undefined;
  /** Warnings count as errors. Default false. */
  readonly strict?: boolean;
  /** Default text. */
  readonly output?: CheckFormat | undefined;
}

/**
 * Prints the problems of a configuration and, if it is valid, how its cases turn out or what a change to it would do. Resolves with the exit
 * code: 1 if the configuration or the cases are not valid, a case fails, or requests change as they must not.
 */
export async function check(
  source: ConfigSource,
  { offline = false, strict = false, expect, impact, output = "text" }: CheckOptions,
  context: Context,
): Promise<number> {
  const print = (text: string): Promise<void> => write(context.stdout, text);
  const file = rereadable(source);
  const checked = await checkConfig(file, context.env, { offline });
  const { loaded } = checked;
  const report = strict ? strictReport(checked.report) : checked.report;
  if (impact !== undefined && report.ok && loaded.ok) {
    const { samples, before } = impact;
    const found =
      before.length === 0
        ? { impact: await impactAt(samples, file, context), diagnostics: [] }
        : await impactOn(samples, before, { loaded, locate: locating(file, context.env) }, context);
    const diagnostics = [...report.diagnostics, ...found.diagnostics];
    const plain = { ...report, diagnostics };
    const whole = strict ? strictReport(plain) : plain;
    const ok = whole.ok && !changesIn(found.impact, impact.failOn);
    if (output === "json") await writeJson(context, { ...whole, ok, impact: found.impact });
    else await print(`${RENDER[output](whole)}${impactText(found.impact)}`);
    return ok ? 0 : 1;
  }
  const cases = expect === undefined || !loaded.ok ? undefined : casesOf(expect, loaded, context);
  if (cases === undefined || "diagnostics" in cases || !loaded.ok) {
    const more = cases !== undefined && "diagnostics" in cases ? cases.diagnostics : [];
    const ok = report.ok && cases === undefined;
    const whole = { ...report, ok, diagnostics: [...report.diagnostics, ...more] };
    await (output === "json" ? writeJson(context, whole) : print(RENDER[output](whole)));
    return ok ? 0 : 1;
  }
  if (output !== "json" && output !== "junit") await print(RENDER[output](report));
  const rehearsal = rehearse(loaded, context.env);
  const verdicts: Verdict[] = [];
  try {
    for await (const verdict of runCases(cases, rehearsal, sensitiveHeaders(loaded.config.sensitiveHeaders))) {
      const placed = hasPassed(verdict) ? verdict : inConfiguration(verdict, locating(file, context.env));
      verdicts.push(placed);
      if (output === "text") await print(caseText(cases.file, placed));
    }
  } finally {
    rehearsal.close();
  }
  const ok = report.ok && verdicts.every(hasPassed);
  if (output === "text") await print(summaryText(verdicts));
  else if (output === "junit") await print(junitReport(cases.file, verdicts));
  else if (output === "github") await print(verdicts.map((verdict) => caseAnnotation(cases.file, verdict)).join(""));
  else await writeJson(context, jsonReport(report, ok, verdicts));
  return ok ? 0 : 1;
}

/** How a report without results of cases is printed; JUnit's XML has no place for problems of a configuration. */
const RENDER = { text: renderReport, junit: renderReport, github: annotations } as const;

/** With the places in the configuration of what decided. */
function inConfiguration(verdict: Verdict, locate: Locate): Verdict {
  const failures = verdict.failures.map((each) => ({ ...each, why: placed(each.why, locate) }));
  return { ...verdict, failures };
}

/** What the change would do to the requests of a file of samples, and a warning if `before` is not the configuration that they were taken with. */
async function impactOn(
  samples: string,
  before: readonly string[],
  { loaded, locate }: { readonly loaded: ValidConfiguration; readonly locate: Locate },
  { env }: Context,
): Promise<{ readonly impact: Impact; readonly diagnostics: readonly Diagnostic[] }> {
  const taken = readSamples(samples);
  const file = rereadable({ kind: "files", paths: before });
  const old = await validConfiguration(file, env, before.join(", "));
  const rehearsal = rehearse(old, env);
  const after = rehearse(loaded, env);
  try {
    const sides = [
      { rehearsal, locate: locating(file, env) },
      { rehearsal: after, locate },
    ] as const;
    const impact = await impactOf(taken.samples, ...sides);
    const known = fingerprintOf(old.ir, sensitiveHeaders(old.config.sensitiveHeaders));
    const difference = differenceBetween(taken.configuration, known);
    return {
      impact,
      diagnostics: difference === undefined ? [] : [otherConfiguration(samples, before.join(", "), difference)],
    };
  } finally {
    rehearsal.close();
    after.close();
  }
}

function otherConfiguration(samples: string, before: string, difference: string): Diagnostic {
  return {
    severity: "warning",
    file: samples,
    line: 0,
    column: 0,
    path: "",
    message: `${before} is not the configuration with which these samples were taken: ${difference}`,
    remedy: "name the file that was in effect by --before, or ask the gateway itself: --impact http://localhost:15000",
  };
}

/** What the configuration in place of the one in effect would do to the requests that a gateway has sampled. */
async function impactAt(url: string, source: ConfigSource, { signal }: Context): Promise<Impact> {
  const { texts } = textsOf(source, new InputReader());
  try {
    return await new AdminClient(url.replace(/\/$/, "")).impact({ texts }, { signal });
  } catch (error) {
    if (!(error instanceof AdminClientError)) throw error;
    throw error.kind === "status"
      ? badChange(error.status ?? 0, error.body ?? "")
      : new CliError("unreachable", error.message);
  }
}

function readSamples(file: string): SampleFile {
  try {
    return readSampleFile(readText(file));
  } catch (error) {
    throw new CliError("failure", `cannot read ${file}: ${messageOf(error)}`);
  }
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
