/** The spec of a custom resource, checked by its schema, with problems in words. */
import type { z } from "zod";
import { formatPath, type Path } from "../../base/paths.ts";
import { STANDARD_ENVIRONMENT } from "../../cel/index.ts";
import { parsingWith } from "../../policies/schema/cel.ts";
import { adviseOnConditions } from "../../translation/advice.ts";
import { knownFields } from "../../translation/problems/known-fields.ts";
import type { Problem, Report } from "../../translation/problems/problem.ts";
import { reportIssues } from "../../translation/problems/schema-errors.ts";

/** A spec, or everything that is wrong with it: `spec.image.tag: is a number; expected a string`. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly [string, ...string[]] };

/** Parses a value at `path` of an object. Problems are reported; undefined if there are any. */
export function parseAt<S extends z.ZodType>(
  schema: S,
  value: unknown,
  path: Path,
  report: Report,
  cel = STANDARD_ENVIRONMENT,
): z.output<S> | undefined {
  const result = schema.safeParse(value, parsingWith(cel));
  if (result.success) {
    adviseOnConditions(schema, value, path, report, cel);
    return result.data;
  }
  const place: Report = (at, problem, key) => report([...path, ...at], problem, key);
  reportIssues({ value, report: place }, result.error.issues, knownFields(schema));
  return undefined;
}

/** One line about a problem, without line breaks: statuses are read in tables. */
export function problemText(path: Path, { message, expected, suggestion }: Problem, key?: string): string {
  const place = formatPath(key === undefined ? path : [...path, key]);
  // Messages about expressions show them in further lines.
  const [text = ""] = message.split("\n");
  const what = place === "" ? text : `${place}: ${text}`;
  const wanted = expected === undefined ? "" : `; expected ${expected}`;
  return `${what}${wanted}${suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`}`;
}
