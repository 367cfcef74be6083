/**
 * From JSON Schema to the structural schemas of CustomResourceDefinitions: every field has one type and is described once. A choice
 * between objects becomes an object with the fields of all; a choice between a list and an object becomes the list; any other choice between types that Kubernetes cannot express is left to the
 * controller, which reports mistakes in the status. Defaults are left out: the API server would write them into objects, also into
 * alternatives that were not chosen.
 */
import type { JsonSchema } from "./config-schema.ts";

/** A structural schema, with the keywords that we use. */
export interface Structural {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Structural>>;
  readonly required?: readonly string[];
  readonly items?: Structural;
  readonly additionalProperties?: Structural;
  readonly anyOf?: readonly Structural[];
  readonly "x-kubernetes-preserve-unknown-fields"?: true;
  readonly "x-kubernetes-int-or-string"?: true;
  readonly "x-kubernetes-validations"?: readonly Rule[];
}

/** A validation rule in CEL. */
export interface Rule {
  readonly rule: string;
  readonly message: string;
}

const ANYTHING: Structural = { "x-kubernetes-preserve-unknown-fields": true };

/** Keywords that both kinds of schema have; they are copied. */
const COPIED = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enum"] as const;

/** Longer descriptions end after their first sentences. */
const MAX_DESCRIPTION = 200;

export function structural(schema: JsonSchema): Structural {
  const description = schema.description === undefined ? {} : { description: shortened(schema.description) };
  const choices = alternatives(schema);
  if (choices.length > 1) return { ...chosen(choices), ...description };
  const [only = schema] = choices;
  return { ...single(only), ...description };
}

/** The alternatives of a schema, at any depth of nesting. */
function alternatives(schema: JsonSchema): readonly JsonSchema[] {
  if (schema.anyOf === undefined) return [schema];
  return schema.anyOf.flatMap(alternatives);
}

function chosen(choices: readonly JsonSchema[]): Structural {
  const parts = choices.map(single);
  const types = new Set(parts.map(({ type }) => type));
  const [type] = types;
  if (types.size === 2 && types.has("integer") && types.has("string")) return intOrString(parts);
  // Kubernetes has no choice between a list and an object; with `ANYTHING`, the API server would keep unknown fields.
  if (types.size === 2 && types.has("array") && types.has("object")) return parts.find(isList) ?? ANYTHING;
  if (types.size > 1 || type === undefined) return ANYTHING;
  if (type === "object") return anyObject(parts);
  const enums = parts.flatMap((part) => part.enum ?? []);
  return parts.every((part) => part.enum !== undefined) ? { type, enum: [...new Set(enums)] } : { type };
}

/** Bounds apply to numbers only, a pattern to texts only; the values of texts become one, since `enum` would refuse every number. */
function intOrString(parts: readonly Structural[]): Structural {
  const rest = parts.map(({ type: _type, description: _description, enum: values, ...others }) => ({
    ...others,
    ...(values !== undefined && { pattern: `^(${values.join("|")})$` }),
  }));
  return Object.assign(
    { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true },
    ...rest,
  );
}

function isList({ type }: Structural): boolean {
  return type === "array";
}

/** An object with the fields of all. Which of them go together is checked by the controller. */
function anyObject(parts: readonly Structural[]): Structural {
  if (parts.some(({ properties }) => properties === undefined)) return { type: "object", ...ANYTHING };
  const properties: Record<string, Structural> = {};
  for (const part of parts)
    for (const [name, field] of Object.entries(part.properties ?? {})) {
      const known = properties[name];
      properties[name] = known === undefined ? field : common(known, field);
    }
  const required = (parts[0]?.required ?? []).filter((name) => parts.every((part) => part.required?.includes(name)));
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}

function common(a: Structural, b: Structural): Structural {
  if (JSON.stringify(a) === JSON.stringify(b) || a.type === undefined) return a;
  if (a.type !== b.type) return ANYTHING;
  if (a.type === "object")
    return { ...anyObject([a, b]), ...(a.description !== undefined && { description: a.description }) };
  const enums = [...new Set([...(a.enum ?? []), ...(b.enum ?? [])])];
  return { type: a.type, ...(a.enum !== undefined && b.enum !== undefined && { enum: enums }) };
}

function single(schema: JsonSchema): Structural {
  const { type, properties, items, additionalProperties, required = [], pattern } = schema;
  const written = schema as Readonly<Record<string, unknown>>;
  const choice = schema.const === undefined ? schema.enum : [schema.const];
  const actual = typeof type === "string" ? type : choice === undefined ? undefined : typeof choice[0];
  if (actual === undefined) return ANYTHING;
  const copied = Object.fromEntries(
    COPIED.filter(
      (name) => written[name] !== undefined && Math.abs(Number(written[name])) !== Number.MAX_SAFE_INTEGER,
    ).map((name) => [name, written[name]]),
  );
  return {
    type: actual,
    ...copied,
    ...(schema.const !== undefined && { enum: [schema.const] }),
    // Go has no look-around.
    ...(pattern !== undefined && !pattern.includes("(?") && { pattern }),
    ...(properties !== undefined && { properties: mapValues(properties, structural) }),
    ...(properties !== undefined && required.length > 0 && { required }),
    ...(actual === "array" && { items: items === undefined ? ANYTHING : structural(items) }),
    ...(actual === "object" && properties === undefined && mapOf(additionalProperties)),
  };
}

/** An object whose keys users choose. */
function mapOf(values: JsonSchema["additionalProperties"]): Structural {
  if (typeof values !== "object" || Object.keys(values).length === 0) return ANYTHING;
  return { additionalProperties: structural(values) };
}

export function mapValues<A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function shortened(text: string): string {
  if (text.length <= MAX_DESCRIPTION) return text;
  const end = text.slice(0, MAX_DESCRIPTION).search(/[.;](?= [^.;]*$)/);
  return end > 0 ? `${text.slice(0, end)}.` : `${text.slice(0, MAX_DESCRIPTION - 1)}…`;
}
