import type { z } from "zod";

/** Field names of the objects that a schema allows at a path, for "did you mean". */
export type KnownFields = (path: readonly PropertyKey[]) => readonly string[];

interface Def {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
}

/** The field names that a schema allows at the path of a value. */
export function knownFields(schema: z.core.$ZodType): KnownFields {
  return (path) => [...new Set(objectsAt(unwrap(schema), path).flatMap((def) => Object.keys(def.shape ?? {})))];
}

/** All object definitions that are valid at a path; several where the schema has alternatives. */
function objectsAt(defs: readonly Def[], path: readonly PropertyKey[]): Def[] {
  const [part, ...rest] = path;
  if (part === undefined) return defs.filter((def) => def.shape !== undefined);
  return defs.flatMap((def) => {
    const field = String(part);
    const known = def.shape !== undefined && Object.hasOwn(def.shape, field) ? def.shape[field] : def.valueType;
    const next = typeof part === "number" ? def.element : known;
    return next === undefined ? [] : objectsAt(unwrap(next), rest);
  });
}

/** The object definitions inside optional, default, pipe and similar schemas; for a union, those of all alternatives. */
function unwrap(schema: z.core.$ZodType): Def[] {
  const def = schema._zod.def as unknown as Def;
  const inner = def.innerType ?? def.in;
  if (inner !== undefined) return unwrap(inner);
  return def.options?.flatMap(unwrap) ?? [def];
}
