import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { reportOf } from "../check.ts";
import { loadConfig } from "../load.ts";

test("check warns about deny rules that a request passes by omitting the value that they negate", () => {
  const authorization = {
    rules: [
      { deny: 'request.headers["x-role"] != "admin"' },
      { deny: 'request.headers[?"x-role"].orValue("") != "admin"' },
      { require: 'request.headers["x-role"] != "guest"' },
    ],
  };
  const config = {
    frontendPolicies: { networkAuthorization: { rules: [{ deny: '!source.subjectCn.endsWith(".example")' }] } },
    binds: [
      { port: 2, listeners: [{ routes: [{ policies: { authorization }, backends: [{ host: "127.0.0.1:1" }] }] }] },
    ],
  };
  const { ok, diagnostics } = reportOf(loadConfig({ kind: "text", text: stringify(config, { lineWidth: 0 }) }, {}));
  assert.equal(ok, true);
  const warnings = diagnostics.filter(({ severity }) => severity === "warning");
  assert.deepEqual(
    warnings.map(({ path, message }) => [path, message]),
    [
      [
        "frontendPolicies.networkAuthorization.rules[0].deny",
        'denies nothing where source.subjectCn is absent, so a request without it passes; to handle absence, write source[?"subjectCn"].orValue("")',
      ],
      [
        "binds[0].listeners[0].routes[0].policies.authorization.rules[0].deny",
        'denies nothing where request.headers["x-role"] is absent, so a request without it passes; to handle absence, write request.headers[?"x-role"].orValue("")',
      ],
    ],
  );
});

test("check warns about a route whose hostnames cannot meet the listener's, and about no other", () => {
  const warned = (listener: string, route: string): boolean => {
    const routes = [{ hostnames: [route], backends: [{ host: "127.0.0.1:1" }] }];
    const text = stringify({ binds: [{ port: 2, listeners: [{ hostname: listener, routes }] }] });
    return reportOf(loadConfig({ kind: "text", text }, {})).diagnostics.some(({ message }) =>
      message.startsWith("never matches: "),
    );
  };
  for (const [listener, route] of [
    ["*", "a.example"],
    ["a.example", "a.example"],
    ["*.example", "a.example"],
    ["*.example", "*.a.example"],
    ["a.example", "*.example"],
    ["*.a.example", "*.example"],
  ] as const)
    assert.equal(warned(listener, route), false, `${listener} and ${route}`);
  for (const [listener, route] of [
    ["a.example", "b.example"],
    ["*.example", "a.test"],
    ["*.a.example", "*.b.example"],
    ["*.a.example", "b.example"],
  ] as const)
    assert.equal(warned(listener, route), true, `${listener} and ${route}`);
});
