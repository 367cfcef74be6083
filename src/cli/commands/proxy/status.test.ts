import assert from "node:assert/strict";
import { test } from "node:test";
import { statusLines } from "./status.ts";

test("warnings are listed with their place and remedy, and the number of those left out", () => {
  const warning = { file: "a.yaml", line: 6, column: 3, path: "routes[0]", message: "lets pass", remedy: "set mode" };
  const text = statusLines({ synchronized: true, warnings: { count: 3, first: [warning] } });
  assert.equal(
    text,
    "synchronized  yes\n\n3 warnings:\n  a.yaml:6:3: routes[0]: lets pass (set mode)\n  and 2 more, which tracegate check prints\n",
  );
  assert.equal(statusLines({ synchronized: true, warnings: { count: 0, first: [] } }), "synchronized  yes\n");
});

test("certificates that are pending and documents that are missing have lines of their own", () => {
  const lastError = { at: "2026-02-03T04:05:06Z", message: "no response from ca.example", count: 1 };
  const pending = {
    name: "a.example",
    state: "pending",
    next: { step: "retry", at: "2026-02-03T04:06:06Z" },
    lastError,
  };
  const text = statusLines({
    synchronized: true,
    missingDocuments: [{ url: "https://a.example/jwks", problem: "status 500", formerInUse: false }],
    pendingCertificates: { count: 2, first: [pending] },
  });
  assert.equal(
    text,
    "synchronized  yes\n\n2 pending certificates:\n  a.example: retry 2026-02-03T04:06:06Z: no response from ca.example\n" +
      "  and 1 more, which tgctl certs prints\n\n1 missing document:\n  https://a.example/jwks: status 500\n",
  );
  const none = { synchronized: true, missingDocuments: [], pendingCertificates: { count: 0, first: [] } };
  assert.equal(statusLines(none), "synchronized  yes\n");
});

test("each problem of a rejected configuration is listed once", () => {
  const problem = { severity: "error", file: "a.yaml", line: 6, column: 1, path: "foo", message: "unknown field" };
  const message = "a.yaml:6:1: error: foo: unknown field; expected one of binds\n  foo: 1\n  ^\n";
  const lastError = { at: "2026-01-01T00:00:00Z", message, diagnostics: [problem] };
  const text = statusLines({ synchronized: false, lastError });
  assert.equal(text.split("unknown field").length - 1, 1, text);
  const other = { ...problem, line: 7, path: "bar" };
  assert.match(
    statusLines({ lastError: { ...lastError, diagnostics: [problem, other] } }),
    / {2}a\.yaml:7:1: error: bar: unknown field\n$/,
  );
});
