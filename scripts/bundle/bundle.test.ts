import assert from "node:assert/strict";
import { test } from "node:test";
import { withLazyModules } from "./bundle.ts";

test("modules of Node.js load at their first use, functions and classes", () => {
  const code = [
    'let node_crypto = require("node:crypto");',
    "exports.hash = () => node_crypto.createHash('sha1');",
    "exports.key = (pem) => new node_crypto.X509Certificate(pem);",
    "exports.Own = () => class extends node_crypto.X509Certificate {};",
  ].join("\n");
  const exports: Record<string, (argument?: string) => unknown> = {};
  let loaded = 0;
  class X509Certificate {}
  const load = (): object => {
    loaded++;
    return { createHash: (name: string) => `hash ${name}`, X509Certificate };
  };
  new Function("exports", "require", withLazyModules(code))(exports, load);
  assert.equal(loaded, 0);
  assert.equal(exports.hash?.(), "hash sha1");
  assert.ok(exports.key?.("") instanceof X509Certificate);
  assert.equal(typeof exports.Own?.(), "function");
  assert.equal(loaded, 1);
});
