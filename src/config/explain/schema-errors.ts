import type { z } from "zod";
import { suggest } from "../../base/suggest.ts";
import { formatPath } from "../parse/diagnostics.ts";
import { type ConfigDocument, isSecret, type Problem } from "../parse/document.ts";
import { valueAt } from "../parse/values.ts";
import type { KnownFields } from "./known-fields.ts";
import { kindOf, objectWith, typeName } from "./type-names.ts";
import { unionIssues } from "./union-errors.ts";
import { absentField } from "./unsupported-fields.ts";
import { absentValue } from "./unsupported-values.ts";

type Issue = z.core.$ZodIssue;

/** More values than this are no help beside the one that was probably meant. */
const MAX_NAMED = 10;
/** How the schema library begins a message that the schema itself does not word. */
const UNWORDED = "Invalid input";

/** Adds every schema problem to the document, each at its place and in words. */
export function reportIssues(document: ConfigDocument, issues: readonly Issue[], known: KnownFields): void {
  const told = issues.flatMap((issue) => unionIssues(issue, document.value, known));
  // Where a field is called wrong, that one is missing is no news.
  const misnamed = new Set(
    told.filter((issue) => issue.code === "unrecognized_keys").map((issue) => formatPath(issue.path)),
  );
  for (const issue of told) {
    if (issue.code === "unrecognized_keys") reportUnknown(document, issue, known);
    else if (issue.code === "invalid_key") document.report(issue.path.slice(0, -1), invalidKey(issue), lastKey(issue));
    else if (!(issue.code === "custom" && issue.params?.noneOf !== undefined && misnamed.has(formatPath(issue.path))))
      document.report(issue.path, describe(issue, valueAt(document.value, issue.path), known));
  }
}

/** Fields that are wrong for the same reason are one mistake. */
function reportUnknown(
  document: ConfigDocument,
  { path, keys }: Extract<Issue, { code: "unrecognized_keys" }>,
  known: KnownFields,
): void {
  const reasons = new Set<string>();
  for (const key of keys) {
    const reason = absentField(path, key);
    if (reason === undefined || !/is a list/.test(reason) || !reasons.has(reason))
      document.report(path, unknownField(path, key, known), key);
    if (reason !== undefined) reasons.add(reason);
  }
}

function unknownField(path: readonly PropertyKey[], key: string, known: KnownFields): Problem {
  const message = absentField(path, key);
  if (message !== undefined) return { message };
  const fields = known(path);
  const suggestion = suggest(key, fields);
  if (suggestion !== undefined) return { message: "unknown field", suggestion };
  return { message: "unknown field", ...(fields.length > 0 && { expected: `one of ${fields.join(", ")}` }) };
}

/** Quotes decide in YAML whether `8080` is a number or text. */
function quotesHint(value: unknown, expected: string): string {
  if (expected === "string" && (typeof value === "number" || typeof value === "boolean")) return " in quotes";
  const plain = typeof value === "string" && /^(\d+|true|false)$/.test(value);
  return plain && (expected === "number" || expected === "boolean") ? " without quotes" : "";
}

function lastKey(issue: Issue): string {
  return String(issue.path.at(-1));
}

function invalidKey({ issues }: Extract<Issue, { code: "invalid_key" }>): Problem {
  return { message: issues[0]?.message ?? "not a name" };
}

function describe(issue: Issue, value: unknown, known: KnownFields): Problem {
  switch (issue.code) {
    case "invalid_type": {
      const absent = absentValue(issue.path, value);
      if (absent !== undefined) return { message: absent };
      const message = value === undefined ? "is required" : `is ${kindOf(value, isSecret(issue.path))}`;
      if (!issue.message.startsWith(UNWORDED)) return { message, expected: issue.message };
      const expected = String(issue.expected);
      if (expected === "object") return { message, expected: objectWith(known(issue.path)) };
      return { message, expected: typeName(expected) + quotesHint(value, expected) };
    }
    case "invalid_value": {
      const absent = absentValue(issue.path, value);
      if (absent !== undefined) return { message: absent };
      const values = issue.values.map(String);
      const suggestion = typeof value === "string" ? suggest(value, values) : undefined;
      return {
        message: value === undefined ? "is required" : "not a known value",
        ...((suggestion === undefined || values.length <= MAX_NAMED) && {
          expected: values.length === 1 ? `${values[0]}` : `one of ${values.join(", ")}`,
        }),
        ...(suggestion !== undefined && { suggestion }),
      };
    }
    case "too_small":
      if (issue.origin === "string" || issue.origin === "array") return { message: "must not be empty" };
      return { message: "too small", expected: `at least ${issue.minimum}` };
    case "too_big":
      return { message: "too large", expected: `at most ${issue.maximum}` };
    default:
      return { message: issue.message };
  }
}
