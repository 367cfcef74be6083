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
      { port: 1, listeners: [{ routes: [{ policies: { authorization }, backends: [{ host: "127.0.0.1:1" }] }] }] },
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
