/** What the API server would refuse in objects of tracegate.dev: their fields against the schemas of the CustomResourceDefinitions. Rules in CEL are left to a cluster. */
import { isDeepStrictEqual } from "node:util";
import { CUSTOM_KINDS, customResource } from "../../../scripts/lib/crds.ts";
import type { Structural } from "../../../scripts/lib/structural.ts";
import { TRACEGATE_GROUP } from "../../../src/kube/objects.ts";

type Version = { readonly name: string; readonly schema: { readonly openAPIV3Schema: Structural } };

const ANYTHING: Structural = { "x-kubernetes-preserve-unknown-fields": true };

let known: ReadonlyMap<string, Structural> | undefined;

/** By `<apiVersion> <kind>`. */
function schemas(): ReadonlyMap<string, Structural> {
  known ??= new Map(
    CUSTOM_KINDS.flatMap((kind) => {
      const { spec } = customResource(kind) as { readonly spec: { readonly versions: readonly Version[] } };
      return spec.versions.map(
        ({ name, schema }) => [`${TRACEGATE_GROUP}/${name} ${kind}`, schema.openAPIV3Schema] as const,
      );
    }),
  );
  return known;
}

/** One line for each problem; none for objects of other groups. */
export function crdProblems(object: { readonly apiVersion?: unknown; readonly kind?: unknown }): readonly string[] {
  const { apiVersion, kind } = object;
  if (!String(apiVersion).startsWith(`${TRACEGATE_GROUP}/`)) return [];
  const schema = schemas().get(`${apiVersion} ${kind}`);
  if (schema === undefined) return [`${apiVersion} has no ${kind}`];
  return problems(object, { ...schema, properties: { ...schema.properties, metadata: ANYTHING } }, String(kind));
}

function problems(written: unknown, schema: Structural, path: string): readonly string[] {
  const value = withDefaults(written, schema);
  const own = [...typeProblems(value, schema), ...limitProblems(value, schema)].map((each) => `${path}: ${each}`);
  if (own.length > 0) return own;
  if (Array.isArray(value))
    return value.flatMap((each, i) => problems(each, schema.items ?? ANYTHING, `${path}[${i}]`));
  if (typeof value !== "object" || value === null) return [];
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const absent = (schema.required ?? []).filter((name) => !Object.hasOwn(value, name));
  return [
    ...absent.map((name) => `${path}.${name}: required`),
    ...Object.entries(value).flatMap(([name, each]) => {
      const field = schema.properties?.[name] ?? schema.additionalProperties;
      if (field === undefined) return keepsUnknown ? [] : [`${path}.${name}: unknown field`];
      return problems(each, field, `${path}.${name}`);
    }),
  ];
}

/** The API server adds them before it counts fields. */
function withDefaults(value: unknown, { properties = {} }: Structural): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const preset = Object.entries(properties).flatMap(([name, each]) =>
    each.default === undefined ? [] : [[name, each.default] as const],
  );
  return { ...Object.fromEntries(preset), ...value };
}

function typeProblems(value: unknown, schema: Structural): readonly string[] {
  const actual = Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;
  const types = schema["x-kubernetes-int-or-string"] === true ? ["integer", "string"] : [schema.type ?? actual];
  return types.includes(actual) || (actual === "integer" && types.includes("number"))
    ? []
    : [`${actual} instead of ${types.join(" or ")}`];
}

function limitProblems(value: unknown, schema: Structural): readonly string[] {
  const { enum: values, pattern, minimum = -Infinity, maximum = Infinity } = schema;
  const size = typeof value === "string" || Array.isArray(value) ? value.length : Object.keys(value ?? {}).length;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const outside = (least = 0, most = Infinity): boolean => size < least || size > most;
  return [
    ...(values !== undefined && !values.some((each) => isDeepStrictEqual(each, value))
      ? [`${value} is none of ${values}`]
      : []),
    ...(typeof value === "number" && (value < minimum || value > maximum) ? [`${value} is out of range`] : []),
    ...(typeof value === "string" && pattern !== undefined && !new RegExp(pattern, "u").test(value)
      ? [`${value} does not match ${pattern}`]
      : []),
    ...(typeof value === "string" && outside(schema.minLength, schema.maxLength) ? [`${size} characters`] : []),
    ...(Array.isArray(value) && outside(schema.minItems, schema.maxItems) ? [`${size} items`] : []),
    ...(isObject && outside(schema.minProperties, schema.maxProperties) ? [`${size} fields`] : []),
  ];
}
