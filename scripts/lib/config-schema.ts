import { z } from "zod";
import { configFile } from "../../src/config/schema/config.ts";

/** What the JSON Schema of one value may say, as far as it is read here. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** JSON Schema (draft 2020-12) of a configuration file as people write it. */
export function configJsonSchema(): JsonSchema {
  return makeSchema(() => {});
}

/** The same for editors, which see the text before variables are filled in: `$PORT` may stand for what it has to become. */
export function editorJsonSchema(): JsonSchema {
  return makeSchema(({ jsonSchema }) => {
    const { title, description, default: fallback, ...rest } = jsonSchema;
    const { type, pattern, enum: values } = rest;
    const free = type !== "integer" && type !== "number" && type !== "boolean" && pattern === undefined;
    if (free && values === undefined) return;
    for (const key of Object.keys(rest)) delete jsonSchema[key];
    jsonSchema.anyOf = [rest, VARIABLE];
  });
}

const VARIABLE = { type: "string", pattern: "^\\$[A-Za-z_{]" } as const;

function makeSchema(override: NonNullable<z.core.ToJSONSchemaParams["override"]>): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(configFile, { io: "input", target: "draft-2020-12", override });
  return { $schema, $id: "tracegate-config.json", ...rest } as JsonSchema;
}
