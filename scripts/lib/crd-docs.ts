/** The tables of docs/crds.md: the fields of each custom resource. Policies have pages of their own, which are linked. */
import { POLICY_SCHEMAS } from "../../src/policies/schemas.ts";
import { cell, policyPage } from "./config-docs.ts";
import { CUSTOM_KINDS, specOf } from "./crds.ts";
import type { Structural } from "./structural.ts";

/** Objects that are described by a table row for each of their fields, down to this depth. */
const MAX_DEPTH = 3;

export function crdTables(): string {
  return CUSTOM_KINDS.map((kind) => {
    const rows = rowsOf(specOf(kind), "spec", 1);
    return `### ${kind}\n\n| Field | Type | Meaning |\n|---|---|---|\n${rows.join("\n")}\n`;
  }).join("\n");
}

function rowsOf(schema: Structural, path: string, depth: number): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = `${path}.${name}`;
    const link = Object.hasOwn(POLICY_SCHEMAS, name) && /^spec\.(traffic|backend|policies)$/.test(path);
    const meaning = link ? `[${name}](${policyPage(name)})` : (field.description ?? "");
    const row = `| \`${at}\` | ${typeOf(field)} | ${cell(meaning)} |`;
    const inner = field.items ?? field;
    const isOpen = inner.properties !== undefined && !link && depth < MAX_DEPTH && !path.endsWith(".frontend");
    return [row, ...(isOpen ? rowsOf(inner, field.items === undefined ? at : `${at}[]`, depth + 1) : [])];
  });
}

function typeOf({ type, items, enum: choices }: Structural): string {
  if (type === "array") return `list of ${typeOf(items ?? {})}`;
  if (choices !== undefined) return choices.map((each) => `\`${each === "" ? '""' : String(each)}\``).join(", ");
  return type ?? "any";
}
