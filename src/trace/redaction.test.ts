import assert from "node:assert/strict";
import { test } from "node:test";
import { REDACTED } from "../base/redaction.ts";
import { redactHeaders, sensitiveHeaders } from "./redaction.ts";

const HIDDEN = sensitiveHeaders(["X-Tenant-Key"]);

test("values of names that are always sensitive, or configured as such, are redacted", () => {
  const names = ["authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key", "x-tenant-key"];
  const shown = redactHeaders([...names.flatMap((name) => [name, "secret"]), "accept", "*/*"], HIDDEN);
  assert.deepEqual(shown, { ...Object.fromEntries(names.map((name) => [name, REDACTED])), accept: "*/*" });
});

test("repeated fields are joined, cookies in their own way; a repeated secret is shown once", () => {
  const list = ["accept", "a", "accept", "b", "cookie", "c=1", "cookie", "d=2"];
  assert.deepEqual(redactHeaders(list, new Set()), { accept: "a, b", cookie: "c=1; d=2" });
  assert.deepEqual(redactHeaders(list, HIDDEN), { accept: "a, b", cookie: REDACTED });
});

test("names of object properties stay plain entries", () => {
  const shown = redactHeaders(["__proto__", "1", "__proto__", "2", "constructor", "3"], HIDDEN);
  assert.equal(JSON.stringify(shown), '{"__proto__":"1, 2","constructor":"3"}');
  assert.equal(Object.getPrototypeOf(shown), Object.prototype);
});
