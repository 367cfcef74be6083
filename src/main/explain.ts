import { formatOrigin, type Origin } from "../base/origin.ts";
import { formatPath } from "../base/paths.ts";
import { redactTarget, SECRET_PARAMETERS } from "../base/redaction.ts";
import { type Context, write, writeJson } from "../cli/runner/context.ts";
import { CliError, usage } from "../cli/runner/errors.ts";
import { type ConfigSource, loadConfig, locating, rereadable } from "../config/load.ts";
import { loadWithResources } from "../config/load-thread.ts";
import type { Settings } from "../config/settings.ts";
import type { Ir } from "../ir/ir.ts";
import { packIr } from "../ir/packed-ir.ts";
import { readAssumptionTexts, textOf } from "../rehearsal/assumptions.ts";
import { BadFacts, factsOf, type RequestFacts } from "../rehearsal/facts.ts";
import { type Outcome, Rehearsal } from "../rehearsal/rehearsal.ts";
import { type Step, stepsOf } from "../trace/steps.ts";
import { formatDiagnostics } from "../translation/problems/diagnostics.ts";
import { ResourceStore } from "../translation/resources/store.ts";
import { stepLines } from "../tui/step-lines.ts";
import { keysOf } from "./worker-settings.ts";

interface ExplainOptions {
  readonly file: string;
  readonly assume: readonly string[];
  readonly source: string | undefined;
  /** Words after `--`. */
  readonly request: readonly string[];
}

/** Explains what a configuration does with one request. Resolves with the exit code: 0 if an outcome lets the request pass, else 1. */
export async function explain({ file, assume, source, request }: ExplainOptions, context: Context): Promise<number> {
  const { assumed, facts } = read(assume, request, source);
  const configuration = rereadable({ kind: "file", path: file });
  const rehearsal = await rehearsalOf(configuration, context.env);
  const locate = locating(configuration, context.env);
  try {
    const outcomes = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
    if (context.json) await writeJson(context, { outcomes: outcomes.map((outcome) => outcomeJson(outcome, locate)) });
    else await write(context.stdout, outcomes.map((outcome) => outcomeText(outcome, facts, locate)).join("\n"));
    return outcomes.every(refuses) ? 1 : 0;
  } catch (error) {
    throw asUsage(error);
  } finally {
    rehearsal.close();
  }
}

async function rehearsalOf(source: ConfigSource, env: Context["env"]): Promise<Rehearsal> {
  const store = ResourceStore.ofFile();
  const loaded = await loadWithResources((known) => store.obeying(loadConfig(source, env, known)), store);
  if (!loaded.ok)
    throw new CliError("failure", `the configuration is not valid\n${formatDiagnostics(loaded.diagnostics).trimEnd()}`);
  return rehearse(loaded, env);
}

/** A rehearsal of a configuration, which the caller closes. */
export function rehearse(
  { config, ir }: { readonly config: Settings; readonly ir: Ir },
  env: Context["env"],
): Rehearsal {
  const { sensitiveHeaders, expressions } = config;
  return new Rehearsal(packIr(ir), { sensitiveHeaders, perRequest: expressions.perRequest * 1000, ...keysOf(env) });
}

function read(assume: readonly string[], request: readonly string[], source: string | undefined) {
  try {
    return { assumed: readAssumptionTexts(assume), facts: factsOf(request, source) };
  } catch (error) {
    throw asUsage(error);
  }
}

/** A mistake in the request or in what is assumed is one on the command line. */
function asUsage(error: unknown): unknown {
  return error instanceof BadFacts ? usage(error.message, error.hint) : error;
}

function outcomeJson({ given, share, record, events }: Outcome, locate: ReturnType<typeof locating>): object {
  const { listener, route, endpoint, status, error, reason } = record ?? {};
  return {
    given,
    share,
    listener,
    route,
    endpoint,
    status,
    reason: reason ?? "Upstream",
    error,
    steps: stepsOf(events).map((step) => located(step, locate)),
  };
}

/** Origins with the place of their path in the file. */
function located({ origin, steps, ...step }: Step, locate: ReturnType<typeof locating>): object {
  return {
    ...step,
    ...(origin !== undefined && { origin: { path: formatPath(origin.path), ...locate(origin.path) } }),
    steps: steps.map((each) => located(each, locate)),
  };
}

/** The gateway has refused it: its own response, not that of the backend, is an error. */
function refuses({ record }: Outcome): boolean {
  if (record?.status === undefined) return true;
  // A gRPC call that is refused has status 200.
  const { reason = "Upstream" } = record;
  return reason !== "Upstream" && (record.status >= 400 || record.error !== undefined);
}

function outcomeText(
  { given, share, record, events }: Outcome,
  { method, target }: RequestFacts,
  locate: ReturnType<typeof locating>,
): string {
  const { status = "no response", route, endpoint, error = "" } = record ?? {};
  const parts = [
    `${method} ${redactTarget(target, SECRET_PARAMETERS)} → ${status}`,
    route === undefined ? "" : `route ${route}`,
    endpoint === undefined ? "" : `endpoint ${endpoint}`,
    error,
  ];
  const assumed = Object.entries(given).map(([name, value]) => `${name}=${textOf(value)}`);
  const percent = share === 1 ? "" : ` (${Number((share * 100).toFixed(2))} % of requests)`;
  const condition = assumed.length === 0 ? [] : [`if ${assumed.join(", ")}${percent}:`];
  const title = parts.filter((part) => part !== "").join(" · ");
  const written = (origin: Origin): string => {
    const place = locate(origin.path);
    return place === undefined ? formatOrigin(origin) : `${place.file}:${place.line}`;
  };
  return `${[...condition, title, ...stepLines(stepsOf(events), written)].join("\n")}\n`;
}
