import { editorJsonSchema } from "./json-schema.ts";
import { configReference } from "./reference-page.ts";

/** The files of the checkout that are made from the configuration's schema: path → content. */
export function generated(): Readonly<Record<string, string>> {
  return {
    "schema/config.json": `${JSON.stringify(editorJsonSchema(), null, 2)}\n`,
    "docs/configuration.md": configReference(),
  };
}
