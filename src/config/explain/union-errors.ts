import type { z } from "zod";
import { isSecret } from "../parse/document.ts";
import { valueAt } from "../parse/values.ts";
import type { KnownFields } from "./known-fields.ts";
import { kindOf, objectWith, typeName } from "./type-names.ts";

type Issue = z.core.$ZodIssue;
type Union = Extract<Issue, { code: "invalid_union" }>;

/**
 * The issues to tell in place of one about alternatives: those of the alternative that was meant, or one that says what
 * could stand there. Of alternatives that are objects, that one is meant which has all the fields that are given.
 */
export function unionIssues(issue: Issue, root: unknown, known: KnownFields): Issue[] {
  if (issue.code !== "invalid_union") return [issue];
  const value = valueAt(root, issue.path);
  const alternatives = issue.errors.filter((errors) => errors.length > 0);
  const fitting = alternatives.filter((errors) => !errors.some(isOfAnotherType));
  if (typeof value === "object" && value !== null && !Array.isArray(value) && fitting.length > 0)
    return objectIssues(issue, value as Record<string, unknown>, fitting, root, known);
  const [best, ...others] = fitting;
  if (best !== undefined && others.length === 0)
    return best.flatMap((inner) => unionIssues(place(issue, inner), root, known));
  if (value === undefined) return [custom(issue, "is required")];
  const is = kindOf(value, isSecret(issue.path));
  return [custom(issue, `is ${is}; expected ${expected(alternatives, known(issue.path))}`)];
}

function objectIssues(
  issue: Union,
  value: Record<string, unknown>,
  fitting: Issue[][],
  root: unknown,
  known: KnownFields,
): Issue[] {
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

/** The value is none that the alternative begins to understand. */
function isOfAnotherType(error: Issue): boolean {
  return error.path.length === 0 && (error.code === "invalid_type" || error.code === "invalid_value");
}

/** `fields` are those of the alternatives that are objects. */
function expected(alternatives: readonly Issue[][], fields: readonly string[]): string {
  const names = alternatives.flatMap((errors) =>
    errors.flatMap((error) => {
      if (error.code === "invalid_value") return error.values.map(String);
      if (error.code !== "invalid_type") return [];
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
