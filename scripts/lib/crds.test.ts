import assert from "node:assert/strict";
import { test } from "node:test";
import { RE2JS } from "re2js";
import { RESOURCES } from "../../src/kube/resources.ts";
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

/** The one form in which the API server permits a choice of types. */
const INT_OR_STRING: Node = {
  anyOf: [{ type: "integer" }, { type: "string" }],
  "x-kubernetes-int-or-string": true,
};

/** Fields that the API server cannot check, by the reason. The controller reports their mistakes in statuses. */
const OPAQUE: Readonly<Record<string, RegExp>> = {
  "a text, or an object that refers to one":
    /\.(?:key|cert|root|certificate|signingKey|clientSecret|htpasswd|jwks|discovery|directResponse(?:\.conditional\[\])?\.body|errorPages\[\]\.(?:html|json|text)|ipAccess\.(?:allow|deny)\[\])$/,
  "a text, or an object":
    /\.(?:failureMode|(?:urlRewrite|requestRedirect)\.authority|authorization\.rules\[\]|networkAuthorization\.rules\[\])$/i,
  "a text, or a number or boolean":
    /\.tracing\.(?:client|random)Sampling$|\.tls\.alpn\[\]$|\.errorPages\[\]\.statuses\[\]$/,
  "policies of calls, which would be most of the schema if each call described them": /\.policies$/,
  "names and values that users choose": /\.jwtSign\.claims$|\.apiKey\.keys\[\]\.metadata$/,
  "objects of Kubernetes, which change with its version":
    /^TracegateParameters\.spec\.(?:(?:daemonSet|deployment|horizontalPodAutoscaler|podDisruptionBudget|service|serviceAccount)\.spec|resources|env\[\]\.valueFrom)$/,
  "a part of the configuration file, with its own schema": /^TracegateParameters\.spec\.rawConfig$/,
};

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
      const { anyOf, "x-kubernetes-int-or-string": intOrString, ...others } = node;
      if (anyOf !== undefined || intOrString !== undefined)
        assert.deepEqual({ anyOf, "x-kubernetes-int-or-string": intOrString }, INT_OR_STRING, path);
      assert.ok(intOrString === undefined || others.enum === undefined, `${path}: enum of texts would refuse numbers`);
      for (const keyword of Object.keys(others)) assert.ok(KEYWORDS.has(keyword), `${path}: ${keyword}`);
      const opaque = node["x-kubernetes-preserve-unknown-fields"] === true;
      assert.ok(typeof node.type === "string" || intOrString === true || opaque, `${path} has no type`);
      assert.ok(node.properties === undefined || node.additionalProperties === undefined, `${path} has both`);
      assert.ok(node.type !== "array" || node.items !== undefined, `${path} has no items`);
      const fields = Object.keys((node.properties ?? {}) as Node);
      for (const field of (node.required ?? []) as string[]) assert.ok(fields.includes(field), `${path}.${field}`);
      // The API server is written in Go.
      if (typeof node.pattern === "string") RE2JS.compile(node.pattern);
    });
  });

  test(`${kind} has no field that accepts everything without a reason`, () => {
    visit(schemaOf(kind), kind, (node, path) => {
      if (node["x-kubernetes-preserve-unknown-fields"] === true)
        assert.ok(
          Object.values(OPAQUE).some((pattern) => pattern.test(path)),
          `${path} accepts everything, also misspelled fields`,
        );
    });
  });

  test(`rules of ${kind} name fields that they can see`, () => {
    visit(schemaOf(kind), kind, (node, path) => {
      const rules = (node["x-kubernetes-validations"] ?? []) as { readonly rule: string }[];
      const fields = (node.properties ?? {}) as Record<string, Node>;
      for (const { rule } of rules)
        for (const [, field = ""] of rule.matchAll(/\bself\.(\w+)/g))
          assert.ok(
            fields[field]?.type !== undefined || fields[field]?.["x-kubernetes-int-or-string"] === true,
            `${path}: ${field} has no type, so that ${rule} does not compile`,
          );
    });
  });

  test(`the versions of ${kind} have equal schemas, as conversion without a webhook requires, and one is stored`, () => {
    const { spec } = customResource(kind) as {
      spec: { conversion: Node; versions: { name: string; served: boolean; storage: boolean; schema: Node }[] };
    };
    assert.deepEqual(spec.conversion, { strategy: "None" });
    const [newest, ...others] = spec.versions.map(({ schema }) =>
      JSON.stringify(schema, (key, value) => (key === "description" && typeof value === "string" ? undefined : value)),
    );
    for (const each of others) assert.equal(each, newest);
    assert.ok(spec.versions.every(({ served }) => served));
    assert.deepEqual(
      spec.versions.filter(({ storage }) => storage).map(({ name }) => name),
      [RESOURCES[kind].version],
    );
  });

  test(`kubectl apply can keep ${kind} in an annotation`, () => {
    assert.ok(JSON.stringify(customResource(kind)).length < 262_144);
  });
}
