import { z } from "zod";
import { configFile } from "./schema/config.ts";

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

/** JSON Schema (draft 2020-12) of a configuration file as people write it, for editors and for the reference page. */
export function configJsonSchema(): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(configFile, { io: "input", target: "draft-2020-12" });
  return { $schema, $id: "tracegate-config.json", ...rest } as JsonSchema;
}
