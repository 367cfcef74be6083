import { type Context, write, writeJson } from "../cli/context.ts";
import { CliError, usage } from "../cli/errors.ts";
import { type ConfigSource, loadConfig, rereadable } from "../config/load.ts";
import { loadWithResources } from "../config/load-thread.ts";
import { formatDiagnostics } from "../config/parse/diagnostics.ts";
import { ResourceStore } from "../config/resources/store.ts";
import { packIr } from "../ir/packed-ir.ts";
import type { CompiledBind } from "../proxy/compiled.ts";
import { CHOICES, type Choice, type Given } from "../rehearsal/choices.ts";
import { BadFacts, factsOf, type RequestFacts } from "../rehearsal/facts.ts";
import { type Outcome, Rehearsal } from "../rehearsal/rehearsal.ts";
import { stepLines, stepsOf } from "../trace/steps.ts";

interface ExplainOptions {
  readonly file: string;
  readonly assume: readonly string[];
  readonly source: string | undefined;
  /** Words after `--`. */
  readonly request: readonly string[];
}

/** Explains what a configuration does with one request. Resolves with the exit code: 0 if an outcome lets the request pass, else 1. */
export async function explain({ file, assume, source, request }: ExplainOptions, context: Context): Promise<number> {
  const assumed = assumptions(assume);
  const facts = readFacts(request, source);
  const rehearsal = await rehearsalOf({ kind: "file", path: file }, context.env);
  try {
    const bind = bindOf(rehearsal.binds, facts.url);
    const outcomes = await rehearsal.outcomes(facts, bind, assumed.given, assumed.status);
    const unused = assumed.names.find((name) => name !== "response" && outcomes.every(({ given }) => !(name in given)));
    if (unused !== undefined)
      throw usage(
        `nothing depends on the assumption ${unused}`,
        `leave out --assume ${unused}=…, or check which policies the route has`,
      );
    if (context.json) await writeJson(context, { outcomes: outcomes.map(outcomeJson) });
    else
      await write(context.stdout, outcomes.map((outcome) => outcomeText(outcome, facts, outcomes.length)).join("\n"));
    return outcomes.every(refuses) ? 1 : 0;
  } finally {
    rehearsal.close();
  }
}

async function rehearsalOf(source: ConfigSource, env: Context["env"]): Promise<Rehearsal> {
  const again = rereadable(source);
  const store = ResourceStore.ofFile();
  const loaded = await loadWithResources((known) => store.obeying(loadConfig(again, env, known)), store);
  if (!loaded.ok)
    throw new CliError("failure", `the configuration is not valid\n${formatDiagnostics(loaded.diagnostics).trimEnd()}`);
  const { sensitiveHeaders, expressions } = loaded.config;
  return new Rehearsal(packIr(loaded.ir), { sensitiveHeaders, perRequest: expressions.perRequest * 1000 });
}

function readFacts(words: readonly string[], source: string | undefined): RequestFacts {
  try {
    return factsOf(words, source);
  } catch (error) {
    if (error instanceof BadFacts) throw usage(error.message, error.hint);
    throw error;
  }
}

interface Assumed {
  readonly given: Given;
  readonly status: number;
  readonly names: readonly string[];
}

function assumptions(texts: readonly string[]): Assumed {
  const given: Partial<Record<Choice, string>> = {};
  let status = 200;
  const names: string[] = [];
  for (const text of texts) {
    const [name = "", value = ""] = text.split("=", 2);
    names.push(name);
    if (name === "response") {
      status = Number(value);
      if (!Number.isInteger(status) || status < 200 || status > 599)
        throw usage(`${text} is not a status`, "write --assume response=503");
      continue;
    }
    if (!isChoice(name))
      throw usage(
        `nothing can be assumed about ${JSON.stringify(name)}`,
        `write one of response, ${Object.keys(CHOICES).join(", ")}`,
      );
    const values: readonly string[] = CHOICES[name];
    if (!values.includes(value))
      throw usage(`${name} cannot be ${JSON.stringify(value)}`, `write --assume ${name}=${values.join("|")}`);
    given[name] = value;
  }
  return { given, status, names };
}

function isChoice(name: string): name is Choice {
  return Object.hasOwn(CHOICES, name);
}

/** The bind that a client would reach with the URL: by its port or, without one, the only bind for its scheme. */
function bindOf(binds: readonly CompiledBind[], url: URL): CompiledBind {
  const isTls = url.protocol === "https:";
  const fitting = binds.filter(({ protocol }) => protocol === (isTls ? "tls" : "http"));
  const port = Number(url.port || (isTls ? 443 : 80));
  const named = fitting.find((bind) => bind.port === port);
  const [only, ...others] = fitting;
  if (named !== undefined) return named;
  if (url.port === "" && only !== undefined && others.length === 0) return only;
  const ports = fitting.map((bind) => `${url.protocol}//${url.hostname}:${bind.port}`);
  throw usage(
    `the configuration has no bind for ${url.protocol.slice(0, -1)} on port ${port}`,
    ports.length === 0
      ? `none of its binds serves ${url.protocol.slice(0, -1)}`
      : `write ${ports.slice(0, 5).join(" or ")}`,
  );
}

function outcomeJson({ given, record, events }: Outcome): object {
  const { listener, route, endpoint, "http.status": status, error, reason } = record;
  return { given, listener, route, endpoint, status, reason: reason ?? "Upstream", error, steps: stepsOf(events) };
}

/** The gateway has refused it: its own response, not that of the backend, is an error. */
function refuses({ record }: Outcome): boolean {
  const status = record["http.status"];
  return typeof status !== "number" || (status >= 400 && record.reason !== undefined);
}

function outcomeText(outcome: Outcome, { head }: RequestFacts, of: number): string {
  const { given, record, events } = outcome;
  const assumed = Object.entries(given).map(([name, value]) => `${name}=${value}`);
  const [start = ""] = head.split(" HTTP/1.1");
  const parts = [
    `${start} → ${String(record["http.status"] ?? "no response")}`,
    record.route === undefined ? "" : `route ${String(record.route)}`,
    record.endpoint === undefined ? "" : `endpoint ${String(record.endpoint)}`,
    record.error === undefined ? "" : String(record.error),
  ];
  const title = parts.filter((part) => part !== "").join(" · ");
  const condition = assumed.length === 0 ? [] : [`${of > 1 ? "if" : "with"} ${assumed.join(", ")}:`];
  return `${[...condition, title, ...stepLines(stepsOf(events))].join("\n")}\n`;
}
