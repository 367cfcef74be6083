import type { z } from "zod";
import type { ConfigDocument, Problem } from "./document.ts";
import { suggest } from "./suggest.ts";

type Issue = z.core.$ZodIssue;

/** Field names of each object of the schema, for "did you mean"; found by walking the schema along a path. */
export type KnownFields = (path: readonly PropertyKey[]) => readonly string[];

/** Adds every schema problem to the document, each at its place and in words. Returns the paths that are wrong. */
export function reportIssues(document: ConfigDocument, issues: readonly Issue[], known: KnownFields): PropertyKey[][] {
  const wrong: PropertyKey[][] = [];
  for (const issue of issues) {
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) {
        wrong.push([...issue.path, key]);
        document.report(issue.path, unknownField(key, known(issue.path)), key);
      }
    } else if (issue.code === "invalid_union") {
      wrong.push(...reportUnion(document, issue, known));
    } else {
      wrong.push([...issue.path]);
      document.report(issue.path, describe(issue));
    }
  }
  return wrong;
}

function unknownField(key: string, fields: readonly string[]): Problem {
  const suggestion = suggest(key, fields);
  return {
    message: "unknown field",
    ...(suggestion !== undefined && { suggestion }),
    ...(suggestion === undefined && fields.length > 0 && { expected: `one of ${fields.join(", ")}` }),
  };
}

/** Of the alternatives, the one that came furthest says what is wrong; if none began, what could stand here. */
function reportUnion(
  document: ConfigDocument,
  issue: Extract<Issue, { code: "invalid_union" }>,
  known: KnownFields,
): PropertyKey[][] {
  const branches = issue.errors.filter((errors) => errors.length > 0);
  const began = branches.filter(
    (errors) => !errors.some((error) => error.code === "invalid_type" && error.path.length === 0),
  );
  const depth = (errors: readonly Issue[]): number => Math.max(...errors.map((error) => error.path.length));
  const best = began.sort((a, b) => depth(b) - depth(a))[0];
  if (best !== undefined && began.length > 0) {
    const placed = best.map((error) => ({ ...error, path: [...issue.path, ...error.path] }) as Issue);
    return reportIssues(document, placed, known);
  }
  const expected = branches.flatMap((errors) =>
    errors.map((error) => ("expected" in error ? String(error.expected) : "")),
  );
  document.report(issue.path, {
    message: "wrong type",
    expected: [...new Set(expected.filter((text) => text !== ""))].map(typeName).join(" or "),
  });
  return [[...issue.path]];
}

function describe(issue: Issue): Problem {
  switch (issue.code) {
    case "invalid_type":
      return issue.message.includes("received undefined")
        ? { message: "is required", expected: typeName(String(issue.expected)) }
        : { message: "wrong type", expected: typeName(String(issue.expected)) };
    case "invalid_value": {
      const values = issue.values.map(String);
      const given = typeof issue.input === "string" ? suggest(issue.input, values) : undefined;
      return {
        message: "not a known value",
        expected: values.length === 1 ? `${values[0]}` : `one of ${values.join(", ")}`,
        ...(given !== undefined && { suggestion: given }),
      };
    }
    case "too_small":
      return {
        message: "too small",
        expected: `${issue.origin === "number" || issue.origin === "int" ? "" : "length "}at least ${issue.minimum}`,
      };
    case "too_big":
      return {
        message: "too large",
        expected: `${issue.origin === "number" || issue.origin === "int" ? "" : "length "}at most ${issue.maximum}`,
      };
    default:
      return { message: issue.message };
  }
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

function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}
