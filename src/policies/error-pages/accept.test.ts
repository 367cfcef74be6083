import assert from "node:assert/strict";
import { test } from "node:test";
import { preferred } from "./accept.ts";

const OFFERED = ["text/html", "application/json", "text/plain"] as const;

test("the type that the client weighs most, then the one that it names, then the first", () => {
  for (const [accept, expected] of [
    ["", "text/html"],
    ["*/*", "text/html"],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", "text/html"],
    ["application/json, text/plain, */*", "application/json"],
    ["text/html;q=0.5, application/json;q=0.4", "text/html"],
    ["text/html;q=0.4, application/json;q=0.5", "application/json"],
    ["text/html;q=0.499, APPLICATION/JSON;charset=utf-8;Q=0.5", "application/json"],
    ["text/*;q=0.5, text/plain", "text/plain"],
    ["text/html;q=0, */*", "application/json"],
    ["*/*;q=0, text/plain;q=0.001", "text/plain"],
    ["image/png", undefined],
    ["text/html;level=1", "text/html"],
    ["text/html;q=2, nonsense, ;;,", "text/html"],
    ["nonsense", "text/html"],
  ] as const)
    assert.equal(preferred(["accept", accept], OFFERED), expected, accept);
  assert.equal(preferred([], OFFERED), "text/html", "without the field");
  assert.equal(preferred(["accept", "image/png", "accept", "text/plain"], OFFERED), "text/plain", "in two fields");
});
