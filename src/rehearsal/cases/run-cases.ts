import { isDeepStrictEqual } from "node:util";
import { REDACTED } from "../../base/redaction.ts";
import type { Names } from "../../base/sensitive-names.ts";
import type { Need } from "../../cel/index.ts";
import { type Step, stepsOf } from "../../trace/steps.ts";
import type { Given } from "../choices.ts";
import { BadFacts } from "../facts.ts";
import type { Outcome } from "../outcome.ts";
import type { Rehearsal } from "../rehearsal.ts";
import type { Expectation } from "./case-schema.ts";
import type { Places } from "./places.ts";
import { type Case, type Cases, mistakeIn } from "./read-cases.ts";

/** A field of an expectation, such as `sent.headers.x-user`, that came out differently. */
interface Difference {
  readonly field: string;
  readonly expected: string | number | null;
  /** Secrets are redacted. */
  readonly actual: string | number | null;
}

/** One outcome of a case that differs from what it expects. */
export interface Failure {
  /** What is assumed or chosen in this outcome. */
  readonly given: Given;
  readonly differences: readonly Difference[];
  /** What decided. */
  readonly why: readonly Step[];
}

export interface Verdict {
  readonly case: Case;
  /** Empty: it passed. */
  readonly failures: readonly Failure[];
  /** On what the differences depend that the case does not say: names of assumptions, with the values that outcomes have. */
  readonly open: ReadonlyMap<string, readonly unknown[]>;
  /** What is not known, though outcomes depend on it. */
  readonly needs: readonly Need[];
  /** Why it has no result as it is written, and where that stands in the file. */
  readonly problem?: { readonly message: string; readonly line: number; readonly column: number };
  readonly durationMs: number;
}

/** Rehearses the cases one after another. `hidden`: names of fields whose values are not shown. */
export async function* runCases(
  { cases, places }: Cases,
  rehearsal: Rehearsal,
  hidden: Names,
): AsyncGenerator<Verdict> {
  for (const each of cases) {
    const start = performance.now();
    const result = await verdictOn(each, places, rehearsal, hidden);
    yield { case: each, failures: [], open: new Map(), needs: [], ...result, durationMs: performance.now() - start };
  }
}

async function verdictOn(each: Case, places: Places, rehearsal: Rehearsal, hidden: Names): Promise<Partial<Verdict>> {
  const { facts, assumed, expect } = each;
  try {
    const { outcomes, omitted } = await rehearsal.outcomes(facts, rehearsal.bindFor(facts.url), assumed);
    const compared = outcomes.map((outcome) => ({
      given: outcome.given,
      differences: differencesOf(expect, outcome, places, hidden),
      outcome,
    }));
    const failures = compared
      .filter(({ differences }) => differences.length > 0)
      .map(({ given, differences, outcome }) => ({ given, differences, why: decisive(outcome, differences) }));
    const needs = [...new Map(outcomes.flatMap((outcome) => outcome.needs).map((need) => [need.what, need])).values()];
    if (failures.length > 0) return { failures, needs, open: openChoices(compared, assumed) };
    if (omitted === 0) return { needs };
    const message = "it has too many outcomes to try them all; those that were tried are as expected";
    return { problem: { message, line: each.line, column: each.column }, needs, open: choicesIn(compared, assumed) };
  } catch (error) {
    if (!(error instanceof BadFacts)) throw error;
    const { message, field } = mistakeIn(error);
    return { problem: { message, ...each.placeOf(field) } };
  }
}

/** The choices that the case leaves open, if its result depends on them. */
function openChoices(
  compared: readonly Pick<Failure, "given" | "differences">[],
  assumed: Given,
): Map<string, unknown[]> {
  const [first] = compared;
  const agree = compared.every(({ differences }) => isDeepStrictEqual(differences, first?.differences));
  return agree ? new Map() : choicesIn(compared, assumed);
}

/** What is chosen in the outcomes, with the values that it has in them. */
function choicesIn(compared: readonly { readonly given: Given }[], assumed: Given): Map<string, unknown[]> {
  const open = new Map<string, unknown[]>();
  for (const { given } of compared)
    for (const [name, value] of Object.entries(given)) {
      if (name in assumed) continue;
      const values = open.get(name) ?? [];
      if (!values.includes(value)) open.set(name, [...values, value]);
    }
  return open;
}

function differencesOf(expect: Expectation, outcome: Outcome, places: Places, hidden: Names): Difference[] {
  const { record, sent } = outcome;
  const found: Difference[] = [];
  const compare = (field: string, expected: Difference["expected"] | undefined, actual: Difference["actual"]): void => {
    if (expected !== undefined && expected !== actual) found.push({ field, expected, actual });
  };
  const places_ = { listener: record?.listener ?? null, route: routeOf(outcome), backend: backendOf(outcome) };
  for (const kind of ["listener", "route", "backend"] as const) {
    const name = expect[kind];
    const actual = places_[kind];
    if (name !== null && name !== undefined && places.names(kind, name, actual)) continue;
    compare(kind, name, places.nameOf(kind, actual));
  }
  compare("status", expect.status, record?.status ?? null);
  compare("code", expect.code, record?.code ?? null);
  const last = sent.at(-1);
  if (expect.sent === null) compare("sent", null, last === undefined ? null : `${last.method} ${last.target}`);
  else {
    compare("sent.path", expect.sent?.path, last?.target ?? null);
    compareFields("sent.headers", expect.sent?.headers, last?.headers ?? []);
  }
  compareFields("headers", expect.headers, outcome.received.headers);
  return found;

  function compareFields(
    part: string,
    expected: Readonly<Record<string, string | null>> | undefined,
    actual: readonly string[],
  ): void {
    for (const [name, value] of Object.entries(expected ?? {})) {
      const got = fieldOf(actual, name.toLowerCase());
      const shown = got !== null && hidden.has(name.toLowerCase()) ? REDACTED : got;
      if (got !== value) found.push({ field: `${part}.${name}`, expected: value, actual: shown });
    }
  }
}

/** The key of the route, or that of the last one if it delegates. */
function routeOf({ events }: Outcome): string | null {
  const selections = events.flatMap(({ message }) =>
    message.type === "routeSelection" ? [message.selectedRoute] : [],
  );
  return selections.at(-1) ?? null;
}

function backendOf({ events }: Outcome): string | null {
  const names = events.flatMap(({ message, scope }) =>
    message.type === "requestSnapshot" && message.stage === "final request" && scope === undefined
      ? (message.requestState.backend?.name ?? [])
      : [],
  );
  return names.at(-1) ?? null;
}

/** The values of a field; null if it is absent. */
function fieldOf(list: readonly string[], name: string): string | null {
  const values = list.filter((_, i) => i % 2 === 1 && list[i - 1]?.toLowerCase() === name);
  return values.length === 0 ? null : values.join(", ");
}

/** The steps that show why: for another route its selection, otherwise the last that was refused, or the request as it is sent. */
function decisive({ events }: Outcome, differences: readonly Difference[]): Step[] {
  const steps = stepsOf(events);
  const is = (...fields: readonly string[]): boolean => differences.some(({ field }) => fields.includes(field));
  const selection = steps.findLast(({ kind }) => kind === "route" || kind === "listener");
  const refused = steps.findLast(({ kind, result }) => result === "no" && kind !== "response" && kind !== "shadow");
  const shown = is("route", "listener") ? selection : (refused ?? selection);
  return shown === undefined ? [] : [shown];
}
