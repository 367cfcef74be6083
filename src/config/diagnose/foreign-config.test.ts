import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../load.ts";

const TEXTS: readonly (readonly [what: string, text: string])[] = [
  ["Kubernetes objects", "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n"],
  ["Kubernetes objects", "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Secret\n"],
  ["a configuration of Envoy", "static_resources: {listeners: []}\n"],
  ["a configuration of Envoy", '{"static_resources": {}, "admin": {}}'],
  ["a configuration of Traefik", "entryPoints: {web: {}}\n"],
  ["a configuration of nginx", "http {\n  server {\n    proxy_set_header Host $host;\n  }\n}\n"],
  ["a configuration of HAProxy", "frontend www\n  bind :80\n"],
  ["a configuration of Caddy", ":80 {\n\treverse_proxy localhost:9000\n}\n"],
];

for (const [what, text] of TEXTS)
  test(`one problem says that ${JSON.stringify(text.slice(0, 20))}… is ${what}`, () => {
    const result = loadConfig({ kind: "text", text }, {});
    assert.ok(!result.ok);
    assert.equal(result.diagnostics.length, 1);
    const [{ message } = { message: "" }] = result.diagnostics;
    assert.ok(message.startsWith(`holds ${what}, which tracegate does not read; `), message);
  });

test("an invalid tracegate configuration gets its own error, whatever texts it contains", () => {
  const result = loadConfig({ kind: "text", text: 'binds:\n- port: "1\n  body: |\n    server {\n' }, {});
  assert.ok(!result.ok);
  assert.match(result.diagnostics[0]?.message ?? "", /^not valid YAML/);
});
