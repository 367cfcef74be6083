import { REDACTED, redactTarget, redactUrls, SECRET_PARAMETERS } from "../../base/redaction.ts";
import type { Names } from "../../base/sensitive-names.ts";
import type { HttpRequest } from "../../http/message.ts";
import { type Condition, headerHolds, pathOf, pseudoHeader, queryValues } from "./condition.ts";
import { type Entry, withoutTrailingSlashes } from "./entry.ts";

/** Why one match does not fit a request. */
export interface Miss {
  /** How far the comparison came: path 0, method 1, headers 2, query 3. */
  readonly stage: number;
  readonly reason: string;
}

/** Longest part of a path or value shown: a reason is written for every route, which would multiply a long path. */
const MAX_SHOWN = 120;

/** The first thing that does not fit, or undefined when the match fits. Values of the headers in `hidden` are not shown. */
export function findMiss<R>(entry: Entry<R>, request: HttpRequest, hidden: Names): Miss | undefined {
  const path = pathMiss(entry, pathOf(request));
  if (path !== undefined) return { stage: 0, reason: `path: ${path}` };
  if (entry.method !== undefined && entry.method !== request.method)
    return { stage: 1, reason: `method: ${cut(request.method)} is not ${cut(entry.method)}` };
  for (const header of entry.headers) {
    if (headerHolds(header, request)) continue;
    return { stage: 2, reason: `header ${header.name}: ${headerMiss(header, request, hidden)}` };
  }
  for (const parameter of entry.query) {
    const value = queryValues(request.search).get(parameter.name);
    if (value !== undefined && parameter.accepts(value)) continue;
    let reason = "missing";
    if (value !== undefined)
      reason = SECRET_PARAMETERS.has(parameter.name) ? `${REDACTED} does not match` : valueMiss(parameter, [value]);
    return { stage: 3, reason: `query ${cut(parameter.name)}: ${reason}` };
  }
  return undefined;
}

function pathMiss<R>(entry: Entry<R>, path: string): string | undefined {
  const wanted = entry.path.value;
  const shown = (): string => cut(redactTarget(path, SECRET_PARAMETERS));
  switch (entry.path.type) {
    case "exact":
      return path === wanted ? undefined : `${shown()} is not exactly ${cut(wanted)}`;
    case "regex":
      return entry.pattern?.testExact(path) ? undefined : `${shown()} does not match ${cut(wanted)}`;
    case "pathPrefix": {
      const under = `${withoutTrailingSlashes(path)}/`.startsWith(`${withoutTrailingSlashes(wanted)}/`);
      return under ? undefined : `${shown()} is not under prefix ${cut(wanted)}`;
    }
  }
}

function headerMiss(header: Condition, request: HttpRequest, hidden: Names): string {
  const pseudo = pseudoHeader(header.name, request);
  const values = pseudo === undefined ? [] : [pseudo];
  for (let i = 0; i < request.headers.length; i += 2)
    if (request.headers[i] === header.name) values.push(request.headers[i + 1] as string);
  if (values.length === 0) return "missing";
  // The wanted value of such a header is a secret as well.
  return hidden.has(header.name) ? `${REDACTED} does not match` : valueMiss(header, values);
}

function valueMiss(condition: Condition, values: readonly string[]): string {
  const shown = values.map((value) => JSON.stringify(cut(redactUrls(value)))).join(", ");
  const { type, value } = condition.source;
  return type === "exact"
    ? `${cut(shown)} is not ${JSON.stringify(cut(value))}`
    : `${cut(shown)} does not match ${cut(value)}`;
}

export function cut(text: string): string {
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}
