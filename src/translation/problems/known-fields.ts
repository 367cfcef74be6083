/** What a schema says about a place in a value: its fields, and where it takes conditions. */
import type { z } from "zod";
import type { Path } from "../../base/paths.ts";
import type { ConditionField } from "../../policies/schema/cel.ts";

/** Field names of the objects that a schema allows at a path, for "did you mean". */
export type KnownFields = (path: readonly PropertyKey[]) => readonly string[];

interface Def {
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly condition?: ConditionField;
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
    const next = partOf(def, part);
    return next === undefined ? [] : objectsAt(unwrap(next), rest);
  });
}

/** The schema of an item of a list, or of a field of an object. */
function partOf({ shape, element, valueType }: Def, part: PropertyKey): z.core.$ZodType | undefined {
  if (typeof part === "number") return element;
  return shape !== undefined && Object.hasOwn(shape, part) ? shape[String(part)] : valueType;
}

/** The definitions inside optional, default, pipe and similar schemas; for a union, those of all alternatives. */
function unwrap(schema: z.core.$ZodType): Def[] {
  const def = schema._zod.def as unknown as Def;
  const inner = def.innerType ?? def.in;
  if (inner !== undefined) return unwrap(inner);
  return def.options?.flatMap(unwrap) ?? [def];
}

/** What is written at a field for a condition. */
interface WrittenCondition {
  readonly path: Path;
  readonly text: string;
  readonly field: ConditionField;
}

/** Every condition in a value that fits a schema. */
export function writtenConditions(schema: z.core.$ZodType, value: unknown, path: Path): Generator<WrittenCondition> {
  return conditionsAt(unwrap(schema), value, path);
}

function* conditionsAt(defs: readonly Def[], value: unknown, path: Path): Generator<WrittenCondition> {
  if (typeof value === "string") {
    const [field] = defs.flatMap((def) => def.condition ?? []);
    if (field !== undefined) yield { path, text: value, field };
  } else if (typeof value === "object" && value !== null)
    for (const [name, each] of Object.entries(value)) {
      const part = Array.isArray(value) ? Number(name) : name;
      const inner = defs.flatMap((def) => holdingPartOf(def, part));
      if (inner.length > 0) yield* conditionsAt(inner, each, [...path, part]);
    }
}

/** As `partOf`; empty if its values can have no conditions, as most cannot: these are not looked at. */
function holdingPartOf(def: Def, part: PropertyKey): readonly Def[] {
  const schema = partOf(def, part);
  return schema !== undefined && holdsConditions(schema) ? unwrap(schema) : [];
}

const holding = new WeakMap<z.core.$ZodType, boolean>();

/** Whether a value of a schema can have conditions. */
function holdsConditions(schema: z.core.$ZodType): boolean {
  const known = holding.get(schema);
  if (known !== undefined) return known;
  const holds = unwrap(schema).some(
    ({ condition, shape = {}, element, valueType }) =>
      condition !== undefined ||
      [...Object.values(shape), element, valueType].some((part) => part !== undefined && holdsConditions(part)),
  );
  holding.set(schema, holds);
  return holds;
}
