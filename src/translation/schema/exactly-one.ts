import type { z } from "zod";

/** `params` of the issue that says that none of some fields is set. */
interface NoneOf {
  readonly noneOf: readonly string[];
}

/** An object of which exactly one of `keys` has to be set. */
export function exactlyOne<S extends z.ZodObject>(schema: S, keys: readonly (keyof S["shape"] & string)[]): S {
  const check = refuse(keys);
  return schema.check(check).meta({ oneOf: keys.map((key) => ({ required: [key] })) });
}

/** An object of which not more than one of `keys` may be set. */
export function atMostOne<S extends z.ZodObject>(schema: S, keys: readonly (keyof S["shape"] & string)[]): S {
  return schema
    .check(({ value, issues }) => {
      const set = keys.filter((key) => (value as Record<string, unknown>)[key] !== undefined);
      if (set.length > 1) issues.push({ code: "custom", input: value, message: tooMany(set) });
    })
    .meta({ not: { required: keys } });
}

function tooMany(set: readonly string[]): string {
  return `only one of ${set.join(", ")} may be set`;
}

function refuse(keys: readonly string[]): (context: z.core.ParsePayload<object>) => void {
  return (context) => {
    const set = keys.filter((key) => (context.value as Record<string, unknown>)[key] !== undefined);
    if (set.length === 1) return;
    const none = set.length === 0;
    const message = none ? `one of ${keys.join(", ")} is required` : tooMany(set);
    const params: NoneOf | undefined = none ? { noneOf: keys } : undefined;
    context.issues.push({ code: "custom", input: context.value, message, ...(params !== undefined && { params }) });
  };
}
