import { configReference } from "./config-docs.ts";
import { editorJsonSchema } from "./config-schema.ts";
import { policyPages } from "./policy-docs.ts";

/** The files of the checkout that are made from the configuration's schema: path → content. */
export function generated(readFile: (path: string) => string): Readonly<Record<string, string>> {
  return {
    ...policyPages(readFile),
    "schema/config.json": `${JSON.stringify(editorJsonSchema(), null, 2)}\n`,
    "docs/configuration.md": configReference(),
  };
}
