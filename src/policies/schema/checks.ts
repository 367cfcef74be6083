/** Checks of schemas that concern more than the form of one value. */
import type { z } from "zod";
import { messageOf } from "../../base/errors.ts";

/** What is wrong with a value, or with a field of it. */
type Problem =
  | string
  | {
      readonly message: string;
      readonly path?: readonly string[];
      readonly params?: Readonly<Record<string, unknown>>;
    };

type Check<Value> = (payload: z.core.ParsePayload<Value>) => void;

/** `find`: what is wrong with a value; undefined or an empty list if nothing is. */
export function checking<Value>(find: (value: Value) => Problem | readonly Problem[] | undefined): Check<Value> {
  return ({ value: input, issues }) => {
    for (const problem of [find(input) ?? []].flat()) {
      const { path = [], ...more } = typeof problem === "string" ? { message: problem } : problem;
      issues.push({ code: "custom", input, path: [...path], ...more });
    }
  };
}

/** A value is invalid if `parse` throws; the message is that of the error. */
export function parsedBy<Value>(parse: (value: Value) => unknown): Check<Value> {
  return checking((value) => {
    try {
      parse(value);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  });
}

/** An object of which exactly one of `keys` has to be set. */
export function exactlyOne<S extends z.ZodObject>(schema: S, keys: readonly (keyof S["shape"] & string)[]): S {
  const check = checking<object>((value) => (setOf(value, keys).length === 0 ? noneOf(keys) : tooMany(value, keys)));
  return schema.check(check).meta({ oneOf: keys.map((key) => ({ required: [key] })) });
}

/** An object of which not more than one of `keys` may be set. */
export function atMostOne<S extends z.ZodObject>(schema: S, keys: readonly (keyof S["shape"] & string)[]): S {
  return schema.check(checking<object>((value) => tooMany(value, keys))).meta({ not: { required: keys } });
}

/** None of these fields is set, but one is needed. `params`: error messages leave it out if a misspelt field is the cause. */
export function noneOf(keys: readonly string[]): Problem {
  return { message: `one of ${keys.join(", ")} is required`, params: { noneOf: keys } };
}

/** More than one of these fields is set; undefined if not. */
export function tooMany(value: object, keys: readonly string[]): Problem | undefined {
  const set = setOf(value, keys);
  return set.length > 1 ? `only one of ${set.join(", ")} may be set` : undefined;
}

/** Those of the fields that are set. */
export function setOf(value: object, keys: readonly string[]): readonly string[] {
  return keys.filter((key) => (value as Readonly<Record<string, unknown>>)[key] !== undefined);
}
