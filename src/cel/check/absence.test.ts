import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDARD_ENVIRONMENT as cel } from "../index.ts";

const safeForms = (text: string): readonly string[] => cel.absenceTraps(text, "request").map(({ safe }) => safe);

test("what a rule negates or compares may be absent", () => {
  const traps: readonly (readonly [text: string, ...safe: string[]])[] = [
    ['request.headers["x-role"] != "admin"', 'request.headers[?"x-role"].orValue("")'],
    ['!(request.headers["x-role"] == "admin")', 'request.headers[?"x-role"].orValue("")'],
    ['!request.headers.authorization.startsWith("Bearer ")', 'request.headers[?"authorization"].orValue("")'],
    ['!(request.headers["x-role"] in ["a", "b"])', 'request.headers[?"x-role"].orValue("")'],
    ['jwt.realm.role != "x" || jwt.level < 3', 'jwt[?"realm"][?"role"].orValue("")', 'jwt[?"level"].orValue("")'],
    ["!jwt.groups.exists(g, g == 'ops')", 'jwt[?"groups"].orValue("")'],
    ['source.spiffeId != "spiffe://a/b"', 'source[?"spiffeId"].orValue("")'],
    ['json(request.body).user != "x"', 'default(json(request.body).user, "")'],
    ["jwt.sub == null", "default(jwt.sub, null)"],
    ['!(null != request.headers["x-role"])', 'default(request.headers["x-role"], null)'],
    ['!("sub" in jwt)', "default(jwt, {})"],
    ['request.headers.cookie("s") != "x"', 'default(request.headers.cookie("s"), "")'],
  ];
  for (const [text, ...safe] of traps) assert.deepEqual(safeForms(text), safe, text);
});

test("rules that test presence themselves, or whose values are never absent, cause no warning", () => {
  for (const text of [
    'request.headers["x-role"] == "admin"',
    'request.method != "GET" && !request.path.startsWith("/public")',
    'request.headers[?"x-role"].orValue("") != "admin"',
    '!has(request.headers.authorization) || !request.headers.authorization.startsWith("Bearer ")',
    '!("x-role" in request.headers) || request.headers["x-role"] != "admin"',
    'default(request.headers["x-role"], "") != "admin"',
    'jwt == null || jwt.sub != "alice"',
    "!has(jwt.sub)",
    "jwt.sub != null",
    '"sub" in jwt && jwt.sub != "alice"',
    'jwt == null || !("sub" in jwt)',
    'default(jwt.sub, null) == null || !("sub" in default(jwt, {}))',
    'source.address != "10.0.0.1"',
    "source.identity == null",
    "request.body.size() > 100",
    '["a"].all(x, x != "b")',
  ])
    assert.deepEqual(safeForms(text), [], text);
});
