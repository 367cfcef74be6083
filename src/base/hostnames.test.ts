import assert from "node:assert/strict";
import { test } from "node:test";
import { intersectHostnames } from "./hostnames.ts";

const CASES: readonly (readonly [string, readonly string[], readonly string[] | undefined])[] = [
  ["", [], []],
  ["a.example.com", [], ["a.example.com"]],
  ["", ["a.example.com", "*.b.com"], ["a.example.com", "*.b.com"]],
  ["*.example.com", ["a.example.com", "a.b.example.com"], ["a.example.com", "a.b.example.com"]],
  ["*.example.com", ["example.com"], undefined],
  ["*.example.com", ["badexample.com"], undefined],
  ["*.example.com", ["*.b.example.com"], ["*.b.example.com"]],
  ["*.b.example.com", ["*.example.com", "*.com"], ["*.b.example.com"]],
  ["a.example.com", ["*.example.com", "b.example.com"], ["a.example.com"]],
  ["a.example.com", ["*.a.example.com"], undefined],
];

for (const [listener, route, expected] of CASES)
  test(`listener ${listener || "any"} and route ${route.join(", ") || "any"}`, () => {
    assert.deepEqual(intersectHostnames(listener, route), expected);
  });
