/** Why a route was chosen or not: as data, and as the text that traces show. */
import { readableValue } from "../../base/header-text.ts";
import { REDACTED, redactTarget, redactUrls, SECRET_PARAMETERS } from "../../base/redaction.ts";
import type { Names } from "../../base/sensitive-names.ts";
import type { HttpRequest } from "../../http/message/message.ts";
import type { PathMatch, ValueMatch } from "../../ir/ir.ts";
import type { PrecedenceRule } from "../../ir/precedence.ts";
import { type Condition, headerValues, pathOf, queryValues } from "./condition.ts";
import type { Entry } from "./entry.ts";

/** Values are as the request and the configuration have them; `describeCandidate` redacts and shortens them. */
export type RouteReason =
  | { readonly clause: "selected" }
  /** The route matches too, but the route with the key `winner` takes precedence. */
  | { readonly clause: "precedence"; readonly winner: string; readonly because: Because }
  | {
      readonly clause: "query" | "header";
      readonly wanted: ValueMatch;
      readonly got: readonly string[];
      /** It is not known whether the request had another value. */
      readonly unknown: boolean;
    }
  | { readonly clause: "method"; readonly wanted: string; readonly got: string }
  | { readonly clause: "path"; readonly wanted: PathMatch; readonly got: string }
  /** A value of the request is too long for a regular expression of the route. */
  | { readonly clause: "pattern"; readonly problem: string }
  | { readonly clause: "noMatches" }
  | { readonly clause: "host"; readonly wanted: readonly string[]; readonly got: string };

export type Because =
  | { readonly rule: PrecedenceRule }
  | { readonly rule: "hostname"; readonly winner: string; readonly loser: string };

export interface RouteCandidate<R> {
  readonly route: R;
  /** Whether the route fits the request. */
  readonly matched: boolean;
  readonly reason: RouteReason;
  /** How many matches the route has, if none of them fits: the reason is about the nearest. */
  readonly misses: number;
}

/** What does not fit: the path, or the condition with the index that `missOf` returned. */
export function missReason<R>(entry: Entry<R>, request: HttpRequest, miss: number | "path"): RouteReason {
  if (miss === "path") return { clause: "path", wanted: entry.path, got: pathOf(request) };
  if (miss === 0) return { clause: "method", wanted: entry.method ?? "", got: request.method };
  const header = entry.headers[miss - 1];
  if (header !== undefined) return missedValue("header", header, headerValues(header.name, request));
  const parameter = entry.query[miss - 1 - entry.headers.length] as (typeof entry.query)[number];
  const value = queryValues(request.search).get(parameter.name);
  return missedValue("query", parameter, value === undefined ? [] : [value]);
}

function missedValue(
  clause: "query" | "header",
  { source: wanted, unknown }: Condition,
  got: readonly string[],
): RouteReason {
  return { clause, wanted, got, unknown: got.length === 0 && unknown?.mayHave() === true };
}

/** Longest part of a path or value shown. */
const MAX_SHOWN = 120;
/** Hostnames named in one reason. */
const MAX_NAMES = 5;

/** The reason of a candidate in a trace. `hidden`: headers (lower-case) whose values are not shown. */
export function describeCandidate({ reason, misses }: RouteCandidate<unknown>, hidden: Names): string {
  const text = describeReason(reason, hidden);
  return misses > 1 ? `${text} (nearest of ${misses} matches)` : text;
}

function describeReason(reason: RouteReason, hidden: Names): string {
  switch (reason.clause) {
    case "selected":
      return "selected";
    case "precedence":
      return `precedence: ${reason.winner} is more specific (${describeBecause(reason.because)})`;
    case "query": {
      const { name } = reason.wanted;
      return `query ${cut(name)}: ${valueText(reason, SECRET_PARAMETERS.has(name))}`;
    }
    case "header": {
      const name = reason.wanted.name.toLowerCase();
      // The wanted value of such a header is a secret as well.
      return `header ${name}: ${valueText(reason, hidden.has(name))}`;
    }
    case "method":
      return `method: ${cut(reason.got)} is not ${cut(reason.wanted)}`;
    case "path":
      return `path: ${cut(redactTarget(reason.got, SECRET_PARAMETERS))} ${RELATIONS[reason.wanted.type]} ${cut(reason.wanted.value)}`;
    case "pattern":
      return `pattern: ${reason.problem}`;
    case "noMatches":
      return "path: the route has no matches";
    case "host":
      return `host: ${hostText(reason.got, reason.wanted)}`;
  }
}

const RELATIONS = { exact: "is not exactly", regex: "does not match", pathPrefix: "is not under prefix" } as const;

export function describeBecause(because: Because): string {
  return because.rule === "hostname" ? `hostname ${because.winner} before ${because.loser}` : because.rule;
}

function valueText(
  { clause, wanted: { type, value }, got, unknown }: Extract<RouteReason, { readonly clause: "query" | "header" }>,
  isSecret: boolean,
): string {
  if (unknown) {
    if (isSecret) return "not known, and does not match here";
    return `not known, and here ${type === "exact" ? `not ${JSON.stringify(cut(value))}` : `does not match ${cut(value)}`}`;
  }
  if (got.length === 0) return "missing";
  if (isSecret) return `${REDACTED} does not match`;
  const values = clause === "header" ? got.map(readableValue) : got;
  const shown = cut(values.map((each) => JSON.stringify(cut(redactUrls(each)))).join(", "));
  return type === "exact" ? `${shown} is not ${JSON.stringify(cut(value))}` : `${shown} does not match ${cut(value)}`;
}

/** Why a host fits none of these names. */
export function hostText(host: string, hostnames: readonly string[]): string {
  const more = hostnames.length - MAX_NAMES;
  const shown = hostnames.slice(0, MAX_NAMES).map(cut).join(", ");
  return `${cut(host)} does not match ${more > 0 ? `${shown} and ${more} more` : shown}`;
}

function cut(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
