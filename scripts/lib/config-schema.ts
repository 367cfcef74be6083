/**
 * The JSON Schema of a configuration file, made from the zod schemas in src/config/schema: for editors (schema/config.json),
 * and as the source of the tables in docs/. A shape that occurs in several places is described once, in `$defs`.
 */
import { z } from "zod";
import { configFile } from "../../src/config/schema/config.ts";
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";
import { caseFile } from "../../src/rehearsal/cases/case-schema.ts";

/** The keywords of JSON Schema (draft 2020-12) that the schema of a configuration uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** The schema of a file whose variables have been filled in. */
export function configJsonSchema(): JsonSchema {
  return makeSchema(() => {});
}

/** The schema for editors, which see the text before variables are filled in: `$PORT` may stand for a number or a choice. */
export function editorJsonSchema(): JsonSchema {
  return makeSchema(({ jsonSchema }) => {
    const { type, pattern, enum: choices } = jsonSchema;
    if (choices !== undefined) {
      const { title, description, default: fallback, ...rest } = jsonSchema;
      for (const key of Object.keys(rest)) delete jsonSchema[key];
      jsonSchema.anyOf = [rest, { type: "string", pattern: VARIABLE }];
    } else if (type === "integer" || type === "number" || type === "boolean") {
      // A pattern applies to strings only, a minimum or maximum to numbers only.
      (jsonSchema as { type: readonly string[] }).type = [type, "string"];
      jsonSchema.pattern = VARIABLE;
      // A named schema is visited more than once: for its definition, and for every reference to it.
    } else if (pattern?.startsWith(VARIABLE) === false) jsonSchema.pattern = `${VARIABLE}|${pattern}`;
  });
}

/** The schema of a file of cases, for `tracegate check --expect`. */
export function caseJsonSchema(): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(caseFile, { io: "input", target: "draft-2020-12" });
  return { $schema, $id: "tracegate-expectations.json", ...rest } as JsonSchema;
}

/** The text of a schema file; lists of texts that fit in a line stand in one. */
export function formatSchema(schema: JsonSchema): string {
  const text = JSON.stringify(schema, null, 2);
  return `${text.replace(/\[\n\s+("[^"]*"(?:,\n\s+"[^"]*")*)\n\s+\]/g, (list, inner: string) => {
    const line = `[${inner.replace(/\n\s+/g, " ")}]`;
    return line.length <= 100 ? line : list;
  })}\n`;
}

/** Name in `$defs` of a kind of policy: `extAuthz` → `ExtAuthzPolicy`. */
export function policyDefinition(kind: string): string {
  return `${pascalCase(kind)}Policy`;
}

/** The name of the definition that a schema refers to. */
export function refName({ $ref }: JsonSchema): string | undefined {
  return $ref?.replace(DEFS, "");
}

const DEFS = "#/$defs/";
/** The beginning of a value that comes from an environment variable. */
const VARIABLE = "^\\$[A-Za-z_{]";

/** The descriptions and names that the schemas carry, and a name for every kind of policy. */
class Names extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  readonly #policies = new Map<z.core.$ZodType, string>(
    Object.entries(POLICY_SCHEMAS).map(([kind, { schema }]) => [schema, policyDefinition(kind)]),
  );

  override get<S extends z.core.$ZodType>(schema: S): z.core.$replace<z.core.GlobalMeta, S> | undefined {
    const id = this.#policies.get(schema);
    const known = z.globalRegistry.get(schema);
    return id === undefined ? known : { ...known, id };
  }
}

function makeSchema(override: NonNullable<z.core.ToJSONSchemaParams["override"]>): JsonSchema {
  const options = { io: "input", target: "draft-2020-12", metadata: new Names(), override } as const;
  const { $schema, ...rest } = z.toJSONSchema(configFile, options);
  return { $schema, $id: "tracegate-config.json", ...share(rest as JsonSchema) } as JsonSchema;
}

/** Shorter shapes, in characters of JSON, are easier to read where they stand than behind a reference. */
const MIN_LENGTH = 160;
/** Names of shapes that belong to no definition more than to another, by one of the fields that have them. */
const NAMES: Readonly<Record<string, string>> = {
  ".fields": "AttributeEdits",
  ".clientSampling": "Sampling",
  "BackendTunnelPolicy.key": "FixedCredential",
  "ClientAuth.signingKey": "SigningKey",
  "BufferPolicy.maxBytes": "Size",
  "CredentialTarget.cookie": "CookieLocation",
  "CredentialTarget.header": "HeaderLocation",
  "ExtAuthzPolicy.failureMode": "FailureMode",
  "ExtAuthzPolicy.includeRequestBody": "IncludeRequestBody",
  "ExtAuthzPolicy.service": "ServiceReference",
  "FixedCredential.value": "TextSource",
  "GatewayListener.hostname": "Hostname",
  "GatewayRoute.hostnames": "RouteHostname",
  "HeaderModifier.add": "HeaderValues",
  "NetworkExtAuthz.grpc": "GrpcAuthorization",
  "RouteBackend.dynamic": "DynamicTarget",
  "TlsServer.cipherSuites": "CipherSuites",
  "TlsServer.keyExchangeGroups": "KeyExchangeGroups",
};

/** A shape and the fields that have it. */
interface Shape {
  readonly text: string;
  /** `Definition.field` for each of them. */
  readonly fields: string[];
  readonly schemas: Set<JsonSchema>;
}

/** Moves shapes that several fields have into `$defs`, the largest first: what they contain then occurs there only. */
function share(root: JsonSchema): JsonSchema {
  for (let schema = root; ; ) {
    const repeated = [...shapesOf(schema).values()].filter(({ schemas }) => schemas.size > 1);
    const [largest] = repeated.sort((a, b) => b.text.length - a.text.length);
    if (largest === undefined) return schema;
    schema = define(schema, largest);
  }
}

/** The shapes of all fields and list elements by their text. Descriptions and defaults belong to the field. */
function shapesOf(root: JsonSchema): Map<string, Shape> {
  const found = new Map<string, Shape>();
  const collect = (schema: JsonSchema, field: string): void => {
    // Of a list of objects, the objects are the shape.
    if (schema.items?.properties !== undefined) return;
    const { description: _description, default: _default, ...shape } = schema;
    const text = JSON.stringify(shape);
    if (text.length < MIN_LENGTH) return;
    const known = found.get(text) ?? { text, fields: [], schemas: new Set() };
    found.set(text, known);
    known.fields.push(field);
    known.schemas.add(schema);
  };
  const visit = (schema: JsonSchema, owner: string, field: string): void => {
    for (const [name, each] of Object.entries(schema.properties ?? {})) {
      collect(each, `${owner}.${name}`);
      visit(each, owner, name);
    }
    if (schema.items !== undefined) collect(schema.items, `${owner}.${field}`);
    for (const each of parts(schema)) visit(each, owner, field);
  };
  visit(root, "", "");
  for (const [name, each] of Object.entries(root.$defs ?? {})) visit(each, name, "");
  return found;
}

/** The schemas directly below one, other than those of its fields. */
function parts({ anyOf = [], allOf = [], items, additionalProperties }: JsonSchema): readonly JsonSchema[] {
  const others = [items, additionalProperties].filter((each) => typeof each === "object");
  return [...anyOf, ...allOf, ...others];
}

/** The schema with a shape as a definition, to which each of its places refers. */
function define(root: JsonSchema, { text, fields, schemas }: Shape): JsonSchema {
  const id = freeName(fields, root.$defs ?? {});
  const [description, ...others] = new Set(Array.from(schemas, (each) => each.description));
  const common = others.length === 0 ? description : undefined;
  const replace = (schema: JsonSchema): JsonSchema => {
    if (!schemas.has(schema)) return mapChildren(schema, replace);
    const { description: own, default: fallback } = schema;
    return {
      ...(own !== undefined && own !== common && { description: own }),
      ...(fallback !== undefined && { default: fallback }),
      $ref: DEFS + id,
    };
  };
  const { $defs, ...rest } = replace(root);
  const shape: JsonSchema = { ...(common !== undefined && { description: common }), ...JSON.parse(text) };
  return { ...rest, $defs: { ...$defs, [id]: shape } };
}

/** `ExtAuthzPolicy.protocol` → `ExtAuthzProtocol`. */
function freeName(fields: readonly string[], defs: Readonly<Record<string, unknown>>): string {
  const named = fields.find((field) => Object.hasOwn(NAMES, field));
  const [owner = "", name = ""] = (fields[0] ?? "").split(".");
  const wanted = (named && NAMES[named]) ?? owner.replace(/Policy$/, "") + pascalCase(name);
  for (let i = 1; ; i++) {
    const id = i === 1 ? wanted : `${wanted}${i}`;
    if (!Object.hasOwn(defs, id)) return id;
  }
}

function mapChildren(schema: JsonSchema, change: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const { $defs, properties, items, anyOf, allOf, additionalProperties } = schema;
  const all = (record: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> =>
    Object.fromEntries(Object.entries(record).map(([name, each]) => [name, change(each)]));
  return {
    ...schema,
    ...($defs !== undefined && { $defs: all($defs) }),
    ...(properties !== undefined && { properties: all(properties) }),
    ...(items !== undefined && { items: change(items) }),
    ...(anyOf !== undefined && { anyOf: anyOf.map(change) }),
    ...(allOf !== undefined && { allOf: allOf.map(change) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: change(additionalProperties) }),
  };
}

function pascalCase(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
