import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parseDocument } from "yaml";
import { configJsonSchema, editorJsonSchema, type JsonSchema, policyDefinition, refName } from "./config-schema.ts";
import { root } from "./files.ts";

/** Inputs of golden tests with mistakes that a JSON Schema cannot express, such as CEL that does not compile. */
const BEYOND_A_SCHEMA = [
  "bad-acme.in.yaml",
  "bad-addresses.in.yaml",
  "bad-certificates.in.yaml",
  "bad-content-for-path.in.yaml",
  "bad-custom-functions-inline.in.yaml",
  "bad-custom-functions-syntax.in.yaml",
  "bad-custom-functions.in.yaml",
  "bad-duplicates.in.yaml",
  "bad-frontend-aliases.in.yaml",
  "bad-internal-binds.in.yaml",
  "bad-network-ext-authz-service.in.yaml",
  "bad-network-ext-authz.in.yaml",
  "bad-own-ports.in.yaml",
  "bad-policies-oidc-secret.in.yaml",
  "bad-policies-transformations.in.yaml",
  "bad-pool-endpoints.in.yaml",
  "bad-ports-of-servers.in.yaml",
  "bad-prefix-rewrites.in.yaml",
  "bad-proxy-protocol-from.in.yaml",
  "bad-retry-condition.in.yaml",
  "bad-settings-twice.in.yaml",
  "bad-yaml-two-documents.in.yaml",
];

/** Valid files that an editor marks: a null counts as absent, and a variable may hold a whole route. */
const MARKED = ["test/compat/cases/frontend-logging-backend.yaml", "test/golden/config/env.in.yaml"];

/** What the file says as an editor reads it: before variables are filled in. Undefined where it is not YAML. */
function read(path: string): unknown {
  const document = parseDocument(readFileSync(root + path, "utf8"), { merge: true, logLevel: "silent" });
  if (document.errors.length > 0 || document.contents === null) return undefined;
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}

function files(folder: string, pattern: RegExp): string[] {
  return readdirSync(root + folder)
    .filter((name) => pattern.test(name))
    .map((name) => `${folder}/${name}`);
}

suite("schema/config.json", () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { uri: true } });
  const validate = ajv.compile(JSON.parse(readFileSync(`${root}schema/config.json`, "utf8")));

  const valid = [
    ...files("examples", /\.yaml$/),
    ...files("examples/policies", /\.yaml$/),
    ...files("test/compat/cases", /\.yaml$/),
    ...files("test/golden/config", /^(?!bad-).*\.in\.yaml$/),
  ];
  for (const path of valid.filter((each) => !MARKED.includes(each)))
    test(`accepts ${path}`, () => {
      assert.ok(validate(read(path)), ajv.errorsText(validate.errors));
    });

  test("rejects invalid configurations, unless the mistake is one that no schema can express", () => {
    const inputs = files("test/golden/config", /^bad-.*\.in\.yaml$/);
    assert.deepEqual(
      inputs.filter((path) => read(path) !== undefined && validate(read(path))).map((path) => path.split("/").at(-1)),
      BEYOND_A_SCHEMA,
    );
  });
});

test("a variable is valid in place of a number, a choice or a name", () => {
  const { $defs } = editorJsonSchema();
  const { port, protocol } = $defs?.Gateway?.properties ?? {};
  assert.deepEqual(port, {
    description:
      "TCP or UDP port. 0 lets the system choose one. Required unless `mode` is `internal` or every `address` is `unix:`.",
    type: ["integer", "string"],
    minimum: 0,
    maximum: 65535,
    pattern: "^\\$[A-Za-z_{]",
  });
  assert.deepEqual(protocol?.anyOf, [
    { type: "string", enum: ["HTTP", "HTTPS", "TCP", "TLS", "UDP"] },
    { type: "string", pattern: "^\\$[A-Za-z_{]" },
  ]);
  assert.match($defs?.Route?.properties?.name?.pattern ?? "", /^\^\\\$\[A-Za-z_\{\]\|\^\[A-Za-z0-9\]/);
  assert.equal(configJsonSchema().$defs?.Gateway?.properties?.port?.type, "integer");
});

test("a policy is described once, wherever it is allowed", () => {
  const { $defs } = configJsonSchema();
  for (const owner of ["Gateway", "GatewayListener", "GatewayPolicies", "RoutePolicies"])
    assert.equal(refName($defs?.[owner]?.properties?.jwtAuth ?? {}), policyDefinition("jwtAuth"));
});

test("a shape that several fields have is described once, and each field keeps its own description", () => {
  const { $defs } = configJsonSchema();
  const { Tracing, TcpBackend, ServiceReference } = $defs ?? {};
  assert.deepEqual(Object.keys(ServiceReference?.properties ?? {}), ["name", "port"]);
  for (const owner of [Tracing, TcpBackend]) {
    const { service = {} } = owner?.properties ?? {};
    assert.equal(refName(service), "ServiceReference");
    assert.equal(service.description ?? ServiceReference?.description, "An entry of `services`.");
  }
});

test("every number of bytes can be written with a unit", () => {
  const plain: string[] = [];
  const sizes: string[] = [];
  const visit = (schema: JsonSchema, field: string): void => {
    const { type, title, description = "", properties = {}, items, anyOf = [] } = schema;
    if (title === "size") {
      sizes.push(field);
      return;
    }
    if (type === "integer" && /\bbytes?\b|(?:Size|Bytes)$/i.test(`${description} ${field}`)) plain.push(field);
    for (const [name, each] of Object.entries(properties)) visit(each, name);
    for (const each of items === undefined ? anyOf : [...anyOf, items]) visit(each, field);
  };
  const { $defs = {}, ...file } = configJsonSchema();
  for (const each of [file, ...Object.values($defs)]) visit(each, "");
  assert.deepEqual(plain, ["poolMaxSize"], "connections");
  assert.ok(sizes.includes("memoryLimit") && sizes.includes("maxHeadSize"), sizes.join(", "));
});

test("every field has a description", () => {
  const schema = configJsonSchema();
  const mute: string[] = [];
  for (const [name, definition] of Object.entries({ ...schema.$defs, "": schema } as Record<string, JsonSchema>))
    for (const [field, { description, $ref }] of Object.entries(definition.properties ?? {}))
      if (description === undefined && $ref === undefined) mute.push(`${name}.${field}`);
  assert.deepEqual(mute, []);
});
