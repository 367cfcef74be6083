import assert from "node:assert/strict";
import { test } from "node:test";
import { CelEnvironment } from "../src/cel/index.ts";
import type { RequestRecord } from "../src/recorder/records.ts";
import { termsOf, withoutTerm, withTerm, withValueOf } from "./filter.ts";

const names = (where: string): string[] => termsOf(where).map(({ name }) => name);
const removed = (where: string, name: string): string => {
  const term = termsOf(where).find((each) => each.name === name);
  assert.ok(term, `${name} is not among ${names(where).join(", ")}`);
  return withoutTerm(where, term);
};

/** Whether the gateway finds a request of this route by the filter. */
function finds(where: string, route: string): boolean {
  const record = {
    route,
    listener: "",
    endpoint: "",
    error: "",
    reason: "Upstream",
    policy: "",
    duration: 1,
    attempts: 1,
  } as const;
  return CelEnvironment.defining("")
    .compileCondition(where, "record")
    .matches({ record }, (error) => assert.fail(String(error)));
}

test("conditions are added and removed one at a time, each once", () => {
  const one = withTerm("", "status", 404);
  assert.equal(one, "response.code == 404");
  const two = withTerm(one, "route", "shop/admin");
  assert.equal(two, 'response.code == 404 && route == "shop/admin"');
  assert.equal(withTerm(two, "status", 404), two);
  assert.deepEqual(names(two), ["status 404", "route shop/admin"]);
  assert.equal(removed(two, "status 404"), 'route == "shop/admin"');
  assert.equal(removed(one, "status 404"), "");
});

test("what somebody wrote stays what it means beside a new condition", () => {
  assert.equal(
    withTerm("attempts > 5 || attempts > 1", "status", 502),
    "(attempts > 5 || attempts > 1) && response.code == 502",
  );
  assert.deepEqual(names("(attempts > 5 || attempts > 1) && response.code == 502"), [
    "(attempts > 5 || attempts > 1)",
    "status 502",
  ]);
  assert.deepEqual(names("attempts > 5 ? true : false && true"), ["(attempts > 5 ? true : false && true)"]);
  assert.deepEqual(names("route == 'a' && [1, 2].exists(x, x > 0 && x < 2)"), [
    "route == 'a'",
    "[1, 2].exists(x, x > 0 && x < 2)",
  ]);
  assert.deepEqual(names("request.?host == optional.of('a') && true // only && a"), [
    "request.?host == optional.of('a')",
    "true",
  ]);
  assert.deepEqual(names("  "), []);
});

test("operators and quotes within texts are no operators", () => {
  for (const text of [
    '"a && b"',
    "'a || \"b'",
    '"\\" && \\\\"',
    "r'\\' ",
    '"""a " && b"""',
    "'''a ' || b'''",
    'R"\\"',
    "b'&&'",
  ]) {
    const where = `listener == ${text.trim()}`;
    assert.deepEqual(names(`${where} && true`), [where, "true"]);
  }
});

test("what cannot be taken apart is one condition, which can be removed", () => {
  for (const where of ["(a && b", "a) && (b", '"a && b', "[a && b)] && (c"]) {
    assert.deepEqual(names(where), [`(${where})`], where);
    assert.equal(removed(where, `(${where})`), "");
  }
});

test("a value that a client or a configuration chose finds exactly itself", () => {
  const values = [
    'a"b',
    "a\\b",
    "a\n\r\t\b\f\u0000b",
    "größe 日本 😀",
    "' || true || '",
    '" || true || "',
    "\u2028\u007f",
  ];
  for (const value of values) {
    const where = withTerm("attempts < 5", "route", value);
    assert.equal(finds(where, value), true, where);
    assert.equal(finds(where, `${value}x`), false, where);
    assert.deepEqual(names(where), ["attempts < 5", `route ${value}`]);
  }
});

test("a record without a value adds no condition", () => {
  const request = { path: "/", status: 0, reason: "Upstream" } as const;
  const record: RequestRecord = {
    time: "2026-01-01T00:00:00.000Z",
    worker: 0,
    number: 1,
    generation: 1,
    duration: 1,
    received: 0,
    sent: 0,
    ...request,
  };
  assert.equal(withValueOf("", "route", record), undefined);
  assert.equal(withValueOf("", "status", record), "response.code == 0");
});
