/**
 * Turns issues of the zod schema into diagnostics that people can act on: with their line, in terms of the configuration, with the
 * expected value and a suggestion. Of several issues with one cause only the cause is reported.
 */
import type { z } from "zod";
import { type Fields, isObject } from "../../base/fields.ts";
import { formatPath, valueAt } from "../../base/paths.ts";
import { SensitiveNames } from "../../base/sensitive-names.ts";
import { formatSize } from "../../base/sizes.ts";
import { suggest } from "../../base/suggest.ts";
import { KINDS } from "../../policies/registry.ts";
import { type IntendedForm, intendedForm, intendedList, misplacedCondition } from "./intended-forms.ts";
import type { KnownFields } from "./known-fields.ts";
import { isSecret, type Problem, type Report } from "./problem.ts";
import { absentField, absentValue } from "./unsupported-fields.ts";

type Issue = z.core.$ZodIssue;

/** Longer lists of values are omitted if the message already suggests one of them. */
const MAX_NAMED = 10;

/** A validated value and the destination of its problems. */
interface Validated {
  readonly value: unknown;
  readonly report: Report;
}

/** Reports every issue of the schema at its place in the document; the value was parsed with `parsingWith`. */
export function reportIssues(document: Validated, issues: readonly Issue[], known: KnownFields): void {
  const reported = issues.flatMap((issue) => unionIssues(issue, document.value, known));
  // A misspelt field explains why another one is missing.
  const misnamed = new Set(
    reported.filter((issue) => issue.code === "unrecognized_keys").map((issue) => formatPath(issue.path)),
  );
  const meant = new Set(reported.flatMap((issue) => meantFields(issue, known)));
  const forms = new Set<string>();
  for (const issue of reported) {
    const form = formFor(document.value, issue, known);
    if (form !== undefined) {
      // All issues inside of a value with the wrong form have one cause.
      const place = formatPath(form.path);
      if (!forms.has(place)) document.report(form.path, wrongForm(valueAt(document.value, form.path), form));
      forms.add(place);
    } else if (issue.code === "unrecognized_keys") reportUnknown(document, issue, known);
    else if (issue.code === "invalid_key") document.report(issue.path.slice(0, -1), invalidKey(issue), lastKey(issue));
    else if (!(issue.code === "custom" && issue.params?.noneOf !== undefined && misnamed.has(formatPath(issue.path)))) {
      const value = valueAt(document.value, issue.path);
      if (value === undefined && meant.has(formatPath(issue.path))) continue;
      document.report(issue.path, hidden(issue) ?? describe(issue, value, known));
    }
  }
}

/** The fields that unknown ones were probably meant to be. */
function meantFields(issue: Issue, known: KnownFields): string[] {
  if (issue.code !== "unrecognized_keys") return [];
  return issue.keys.flatMap((key) => {
    const field = suggest(key, known(issue.path));
    return field === undefined ? [] : [formatPath([...issue.path, field])];
  });
}

function formFor(root: unknown, issue: Issue, known: KnownFields): IntendedForm | undefined {
  const wantsList = issue.code === "invalid_type" && issue.expected === "array";
  return intendedForm(root, issue.path) ?? (wantsList ? intendedList(root, issue.path, known) : undefined);
}

function wrongForm(value: unknown, { text, secret, ofItems }: IntendedForm): Problem {
  const is = isObject(value) || ofItems ? "has the wrong form" : `is ${kindOf(value, secret)}`;
  return { message: is, remedy: `write ${text}` };
}

/** The problem without its text if the field is named like a secret, as the header `authorization` is; undefined = it may be shown. */
function hidden(issue: Issue): Problem | undefined {
  const name = issue.path.findLast((part) => typeof part === "string");
  const message: unknown = issue.code === "custom" ? issue.params?.withoutText : undefined;
  return typeof message === "string" && typeof name === "string" && SECRETS.has(name) ? { message } : undefined;
}

const SECRETS = new SensitiveNames();

/** Kinds whose items people write without the list. */
const LISTS_OF_LIMITS: ReadonlySet<PropertyKey | undefined> = new Set(["localRateLimit", "concurrencyLimit"]);

/** Fields of an item where a list of items is wanted are one mistake, reported once. */
function reportUnknown(
  document: Validated,
  { path, keys }: Extract<Issue, { code: "unrecognized_keys" }>,
  known: KnownFields,
): void {
  const ofItems = LISTS_OF_LIMITS.has(path.at(-1)) ? keys.filter((key) => absentField(path, key) !== undefined) : [];
  const repeated = ofItems.slice(1);
  for (const key of keys)
    if (!repeated.includes(key)) document.report(path, unknownField(document.value, path, key, known), key);
}

function unknownField(root: unknown, path: readonly PropertyKey[], key: string, known: KnownFields): Problem {
  const message = absentField(path, key);
  if (message !== undefined) return { message };
  const fields = known(path);
  if (fields.includes("policies") && Object.hasOwn(KINDS, key))
    return { message: "is a policy; move it into policies" };
  const match = fields.includes("matches") ? misplacedCondition(valueAt(root, path), key) : undefined;
  if (match !== undefined) return { message: "is a condition of a match", remedy: `write ${match}` };
  const suggestion = suggest(key, fields);
  if (suggestion !== undefined) return { message: "unknown field", suggestion };
  return {
    message: "unknown field",
    expected: fields.length > 0 ? `one of ${fields.join(", ")}` : "{}, without fields",
  };
}

/** In YAML, quotes decide whether `8080` is a number or a text. */
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
      if (issue.message !== "") return { message, expected: issue.message };
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
      return { message: "too small", expected: `at least ${bound(issue.minimum, value)}` };
    case "too_big":
      return { message: "too large", expected: `at most ${bound(issue.maximum, value)}` };
    default:
      return { message: issue.message };
  }
}

/** With a unit if the value, such as `2KiB`, has one. */
function bound(limit: number | bigint, value: unknown): string {
  return typeof value === "string" ? formatSize(Number(limit)) : `${limit}`;
}

type Union = Extract<Issue, { code: "invalid_union" }>;

/**
 * The issues to report instead of one about a union: those of the alternative that was meant, or one that lists what is
 * expected. Of alternatives that are objects, the one that has all given fields is meant.
 */
function unionIssues(issue: Issue, root: unknown, known: KnownFields): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const value = valueAt(root, issue.path);
  const alternatives = issue.errors.filter((errors) => errors.length > 0);
  const fitting = alternatives.filter((errors) => !errors.some(isOfAnotherType));
  if (isObject(value) && fitting.length > 0) return objectIssues(issue, value, fitting, root, known);
  const [best, ...others] = fitting;
  if (best !== undefined && others.length === 0)
    return best.flatMap((inner) => unionIssues(place(issue, inner), root, known));
  if (value === undefined) return [custom(issue, "is required")];
  const is = kindOf(value, isSecret(issue.path));
  return [custom(issue, `is ${is}; expected ${expected(alternatives, known(issue.path))}`)];
}

function objectIssues(issue: Union, value: Fields, fitting: Issue[][], root: unknown, known: KnownFields): Issue[] {
  const fields = known(issue.path);
  const given = Object.keys(value);
  const unknown = given.filter((key) => !fields.includes(key));
  if (unknown.length > 0)
    return [{ code: "unrecognized_keys", keys: unknown, path: issue.path, message: "", input: value }];
  if (given.length === 0) return [custom(issue, `one of ${fields.join(", ")} is required`)];
  const [meant] = fitting.filter((errors) => !errors.some(isUnknownField));
  if (meant === undefined) return [custom(issue, `only one of ${given.join(", ")} may be set`)];
  return meant.flatMap((inner) => unionIssues(place(issue, inner), root, known));
}

function isUnknownField(error: Issue): boolean {
  return error.path.length === 0 && error.code === "unrecognized_keys";
}

/** The value has another type than the alternative. */
function isOfAnotherType(error: Issue): boolean {
  return error.path.length === 0 && (error.code === "invalid_type" || error.code === "invalid_value");
}

/** `fields` are those of the alternatives that are objects. */
function expected(alternatives: readonly Issue[][], fields: readonly string[]): string {
  const names = alternatives.flatMap((errors) =>
    errors.flatMap((error) => {
      if (error.code === "invalid_value") return error.values.map(String);
      if (error.code !== "invalid_type") return [];
      if (error.message !== "") return [error.message];
      return [error.expected === "object" ? objectWith(fields) : typeName(String(error.expected))];
    }),
  );
  const distinct = [...new Set(names)];
  return [distinct.slice(0, -1).join(", "), ...distinct.slice(-1)].filter((part) => part !== "").join(" or ");
}

function place(issue: Union, inner: Issue): Issue {
  return { ...inner, path: [...issue.path, ...inner.path] } as Issue;
}

function custom(issue: Union, message: string): Issue {
  return { code: "custom", path: issue.path, message, input: undefined };
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "a list",
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

/** The name of a schema's type in messages. */
function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}

/** Fields named to show what an object is; more would hide the rest of the message. */
const MAX_FIELDS = 4;

/** Describes an object by some of its fields. */
function objectWith(fields: readonly string[]): string {
  if (fields.length === 0) return typeName("object");
  const shown = fields.slice(0, MAX_FIELDS).join(", ");
  return `${typeName("object")} with fields such as ${shown}`;
}

/** Describes a value. Text is not quoted, because it may be a secret; a `secret` number is only called a number. */
function kindOf(value: unknown, secret = false): string {
  if (value === null) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string" || typeof value === "object") return typeName(typeof value);
  return secret && typeof value === "number" ? typeName("number") : String(value);
}
