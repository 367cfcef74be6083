import { editorJsonSchema } from "./json-schema.ts";
import { policyPages } from "./policy-pages.ts";
import { configReference } from "./reference-page.ts";

/** The files of the checkout that are made from the configuration's schema: path → content. */
export function generated(readFile: (path: string) => string): Readonly<Record<string, string>> {
  return {
    ...policyPages(readFile),
    "schema/config.json": `${JSON.stringify(editorJsonSchema(), null, 2)}\n`,
    "docs/configuration.md": configReference(),
  };
}
