import assert from "node:assert/strict";
import { test } from "node:test";
import { RE2JS } from "re2js";
import { CUSTOM_KINDS, customResource } from "./crds.ts";

type Node = Readonly<Record<string, unknown>>;

/** What the API server permits in a structural schema, of the keywords that JSON Schema has (KEP-1979). */
const KEYWORDS = new Set([
  ...["type", "description", "enum", "default", "format", "minimum", "maximum", "minLength", "maxLength", "pattern"],
  ...[
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "properties",
    "required",
    "items",
    "additionalProperties",
  ],
  ...["x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-list-type"],
  "x-kubernetes-list-map-keys",
]);

function schemaOf(kind: (typeof CUSTOM_KINDS)[number]): Node {
  const { spec } = customResource(kind) as { spec: { versions: { schema: { openAPIV3Schema: Node } }[] } };
  const schema = spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema !== undefined);
  return schema;
}

function visit(node: Node, path: string, check: (node: Node, path: string) => void): void {
  check(node, path);
  for (const [name, each] of Object.entries((node.properties ?? {}) as Record<string, Node>))
    visit(each, `${path}.${name}`, check);
  if (node.items !== undefined) visit(node.items as Node, `${path}[]`, check);
  if (typeof node.additionalProperties === "object") visit(node.additionalProperties as Node, `${path}{}`, check);
}

for (const kind of CUSTOM_KINDS) {
  test(`${kind} has a structural schema`, () => {
    visit(schemaOf(kind), kind, (node, path) => {
      for (const keyword of Object.keys(node)) assert.ok(KEYWORDS.has(keyword), `${path}: ${keyword}`);
      const opaque = node["x-kubernetes-preserve-unknown-fields"] === true;
      assert.ok(typeof node.type === "string" || opaque, `${path} has no type`);
      assert.ok(node.properties === undefined || node.additionalProperties === undefined, `${path} has both`);
      assert.ok(node.type !== "array" || node.items !== undefined, `${path} has no items`);
      const fields = Object.keys((node.properties ?? {}) as Node);
      for (const field of (node.required ?? []) as string[]) assert.ok(fields.includes(field), `${path}.${field}`);
      // The API server is written in Go.
      if (typeof node.pattern === "string") RE2JS.compile(node.pattern);
    });
  });

  test(`rules of ${kind} name fields that they can see`, () => {
    visit(schemaOf(kind), kind, (node, path) => {
      const rules = (node["x-kubernetes-validations"] ?? []) as { readonly rule: string }[];
      const fields = (node.properties ?? {}) as Record<string, Node>;
      for (const { rule } of rules)
        for (const [, field = ""] of rule.matchAll(/\bself\.(\w+)/g))
          assert.ok(
            fields[field]?.type !== undefined,
            `${path}: ${field} has no type, so that ${rule} does not compile`,
          );
    });
  });

  test(`kubectl apply can keep ${kind} in an annotation`, () => {
    assert.ok(JSON.stringify(customResource(kind)).length < 262_144);
  });
}
