import assert from "node:assert/strict";
import { test } from "node:test";
import { AdminBadRequest } from "../plane/plane.ts";
import { duration, expressionText, flag, integer, jsonBody, oneOf, size, time } from "./parameters.ts";

const of = (text: string): URLSearchParams => new URLSearchParams({ x: text });
const ABSENT = new URLSearchParams();

test("a parameter that is absent has its default", () => {
  assert.equal(expressionText(ABSENT, "x"), undefined);
  assert.equal(expressionText(of(""), "x"), undefined);
  assert.equal(flag(ABSENT, "x"), false);
  assert.equal(integer(ABSENT, "x", 50, 100), 50);
  assert.equal(oneOf(ABSENT, "x", ["a", "b"]), "a");
  assert.equal(size(ABSENT, "x", "4KiB", "1MiB"), 4096);
  assert.equal(duration(ABSENT, "x"), undefined);
  assert.equal(time(ABSENT, "x"), undefined);
});

test("values up to the limits are read", () => {
  assert.equal(flag(of("true"), "x"), true);
  assert.equal(integer(of("100"), "x", 50, 100), 100);
  assert.equal(oneOf(of("b"), "x", ["a", "b"]), "b");
  assert.equal(size(of("1MiB"), "x", "0", "1MiB"), 1024 * 1024);
  assert.equal(duration(of("24h"), "x", "24h"), 86_400_000);
  assert.equal(time(of("2026-01-31T12:00:00.250Z"), "x"), Date.UTC(2026, 0, 31, 12, 0, 0, 250));
  assert.equal(time(of("2026-01-31T12:00:00+02:00"), "x"), Date.UTC(2026, 0, 31, 10));
});

test("anything else is refused, with what is expected", () => {
  const refused: readonly (readonly [() => unknown, RegExp])[] = [
    [() => expressionText(of("a".repeat(4097)), "x"), /longer than 4096/],
    [() => flag(of("yes"), "x"), /expected true or false/],
    ...["0", "101", "1.5", "", "1e1"].map((text) => [() => integer(of(text), "x", 50, 100), /from 1 to 100/] as const),
    [() => oneOf(of("c"), "x", ["a", "b"]), /expected a, b/],
    ...["2MiB", "-1", "much"].map((text) => [() => size(of(text), "x", "0", "1MiB"), /at most 1MiB/] as const),
    ...["25h", "0s", "soon"].map((text) => [() => duration(of(text), "x", "24h"), /at most 24h/] as const),
    // Without a time zone, a time would depend on where the gateway runs.
    ...["1", "2026-01-31", "2026-01-31T12:00:00", "2026-13-31T12:00:00Z"].map(
      (text) => [() => time(of(text), "x"), /expected a time such as/] as const,
    ),
    [() => jsonBody(Buffer.from("{"), '{"a": 1}'), /send \{"a": 1\}/],
  ];
  for (const [read, message] of refused)
    assert.throws(read, (error) => error instanceof AdminBadRequest && message.test(error.message), String(read));
});
