import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadConfig, rereadable } from "./load.ts";

test("what can be read only once is read; other sources stay as they are", () => {
  const descriptor = openSync(fileURLToPath(import.meta.url), "r");
  const path = `/proc/self/fd/${descriptor}`;
  const source = rereadable({ kind: "files", paths: [path] });
  closeSync(descriptor);
  assert.ok(source.kind === "text" && source.name === path);
  assert.match(source.text, /^import assert/);
  for (const each of [
    { kind: "files", paths: ["gateway.yaml"] },
    { kind: "files", paths: ["/dev/fd/999"] },
    { kind: "text", text: "{}" },
  ] as const)
    assert.equal(rereadable(each), each);
});

test("configurations with different functions are checked side by side", () => {
  const configuration = (functions: string, expression: string): string =>
    JSON.stringify({
      config: { customFunctions: functions, metrics: { fields: { add: { label: expression } } } },
      frontendPolicies: { accessLog: { filter: `${expression} == "x"` } },
      gateways: { default: { port: 0, authorization: { rules: [{ deny: `${expression} == "x"` }] } } },
      backends: [{ name: "any", dynamic: { target: expression } }],
      routes: [{ backends: [{ backend: "/any" }], policies: { delay: { duration: expression } } }],
    });
  const load = (functions: string, expression: string): string[] => {
    const loaded = loadConfig({ kind: "text", text: configuration(functions, expression) }, {});
    return loaded.ok ? [] : loaded.diagnostics.map(({ path, message }) => `${path}: ${message.split("\n")[0]}`);
  };
  const [one, other] = ['one() { "a:1" }', 'other() { "b:2" }'];
  const everywhere = (name: string): string[] =>
    [
      "config.metrics.fields.add.label",
      "frontendPolicies.accessLog.filter",
      "gateways.default.authorization.rules[0].deny",
      "backends[0].dynamic.target",
      "routes[0].policies.delay.duration",
    ].map((path) => `${path}: unknown function ${name}`);
  assert.deepEqual(load(one, "one()"), []);
  assert.deepEqual(load(other, "other()"), []);
  assert.deepEqual(load(other, "one()").sort(), everywhere("one").sort());
  assert.deepEqual(load("", "other()").sort(), everywhere("other").sort());
  assert.deepEqual(load(one, "one()"), []);
});

test("an error about a URL does not show its secret parameters", () => {
  const url = "https://issuer.test/jwks?token=s3cret&v=1";
  const jwtAuth = { issuer: "i", jwks: { url } };
  const config = { binds: [{ port: 1, listeners: [{ routes: [{ policies: { jwtAuth } }] }] }] };
  const text = JSON.stringify(config);
  const loaded = loadConfig({ kind: "text", text }, {}, new Map([[url, { problem: `no answer from ${url}` }]]));
  const problems = JSON.stringify(loaded.ok ? loaded.warnings : loaded.diagnostics);
  assert.match(problems, /issuer\.test\/jwks\?token=<redacted>&v=1/);
  assert.doesNotMatch(problems, /s3cret/);
});

test("an error about the expression of a secret header does not show the expression", () => {
  const set = {
    authorization: `"MySecret" + nope(`,
    cookie: "MySecret",
    "x-api-key": "MySecret and MySecret",
    "x-plain": "shown(",
  };
  const policies = { transformations: { request: { set } } };
  const binds = [{ port: 8080, listeners: [{ routes: [{ policies, backends: [{ host: "127.0.0.1:1" }] }] }] }];
  const loaded = loadConfig({ kind: "text", text: JSON.stringify({ binds }) }, {});
  const problems = loaded.ok ? [] : loaded.diagnostics;
  const shown = JSON.stringify(problems);
  assert.equal(problems.length, 4, shown);
  assert.doesNotMatch(shown, /MySecret/);
  assert.match(shown, /shown\(/);
});

test("metadata of a key is data: nothing in it counts as absent", () => {
  const metadata = { path: {}, tier: null };
  const configuration = {
    gateways: { default: { port: 0 } },
    routes: [{ policies: { apiKey: { keys: [{ key: "k-1", metadata }] }, directResponse: { status: 200 } } }],
  };
  const loaded = loadConfig({ kind: "text", text: JSON.stringify(configuration) }, {});
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.match(JSON.stringify(loaded.ir), /"metadata":\{"path":\{\},"tier":null\}/);
});
