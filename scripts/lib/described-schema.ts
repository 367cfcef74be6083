/** JSON Schemas of what programs print, described field by field. */
import type { JsonSchema } from "./config-schema.ts";

interface Field {
  readonly schema: object;
  readonly text: string;
}

/** Described here, checked by the compiler: a field that is missing, does not exist or has the wrong optionality is a type error. */
export type Docs<T> = {
  readonly [F in keyof T]-?: Field &
    (undefined extends T[F] ? { readonly optional: true } : { readonly optional?: never });
};

/** Every word of a union, so that a new one is not forgotten. */
export type Words<T extends string> = Readonly<Record<T, true>>;

/** The schema of an object; it may have more fields in later versions. */
export function objectOf(fields: Readonly<Record<string, Field & { readonly optional?: true }>>): JsonSchema {
  const entries = Object.entries(fields);
  return {
    type: "object",
    properties: Object.fromEntries(
      entries.map(([name, { schema, text: description }]) => [name, { ...schema, description }]),
    ),
    required: entries.filter(([, { optional }]) => optional !== true).map(([name]) => name),
  } as unknown as JsonSchema;
}
