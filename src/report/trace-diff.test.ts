import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fields } from "../base/fields.ts";
import { EVENTS } from "./fixtures/trace.ts";
import { traceDifference } from "./trace-diff.ts";

/** The fixture with replacements in its JSON. */
function changed(...replacements: readonly [from: string | RegExp, to: string][]): readonly Fields[] {
  let text = JSON.stringify(EVENTS);
  for (const [from, to] of replacements) text = text.replaceAll(from, to);
  return JSON.parse(text);
}

function difference(after: readonly Fields[], exact = false): string[] {
  return traceDifference(EVENTS, after, exact).lines.map(({ sign, text }) => sign + text);
}

test("from the first step that differs to the end, below the steps that it is part of", () => {
  const after = changed([/"matched":false,"mode":"deny"/g, '"matched":true,"mode":"deny"']);
  const { omitted, lines } = traceDifference(EVENTS, after, false);
  const [first, ...others] = lines.map(({ sign, text }) => sign + text);
  assert.equal(first, " ✓ policy authorization  allow rules[0] is true");
  assert.deepEqual(others.slice(0, 4), [
    "-    ✗ rule deny blocked → false",
    "+    ✓ rule deny blocked → true",
    " ✓ policy urlRewrite  /api/cart?debug=1 to /cart?debug=1",
    " ✓ request POST http://shop.example.com/cart?debug=1",
  ]);
  assert.equal(others.at(-1), "     try again in a second");
  assert.equal(omitted, 11);
});

test("a trace that ends earlier, and one without a difference", () => {
  const ended = EVENTS.slice(0, -2);
  const rest = ["     retry-after: 1", "-body of the response: 21 bytes", "-    try again in a second"];
  assert.deepEqual(difference(ended).slice(-2), rest.slice(-2));
  assert.deepEqual(
    traceDifference(ended, EVENTS, false).lines.map(({ sign }) => sign),
    [" ", "+", "+"],
  );
  assert.deepEqual(difference(EVENTS), []);
});

test("the request as received comes first: its fields are the first cause", () => {
  const [step, before, after] = difference(changed(["curl/8.5.0", "curl/8.6.0"]));
  assert.equal(step, " received POST http://shop.example.com/api/cart?debug=1 HTTP/1.1");
  assert.deepEqual([before, after], ["-    user-agent: curl/8.5.0", "+    user-agent: curl/8.6.0"]);
});

test("times, ids and ports do not count, unless asked", () => {
  const noise = changed(
    ["127.0.0.1:9000", "127.0.0.1:9117"],
    [/bind\/3000/g, "bind/3001"],
    [
      '"content-length":"20"',
      '"content-length":"20","age":"7","date":"Tue, 03 Mar 2026 10:00:00 GMT","x-id":"6f1e9e0e-0b5a-4a57-9c0e-3f7f9e6d1a2b"',
    ],
  );
  const base = changed([
    '"content-length":"20"',
    '"content-length":"20","age":"5","date":"Mon, 02 Mar 2026 09:00:00 GMT","x-id":"00000000-0b5a-4a57-9c0e-3f7f9e6d1a2b"',
  ]);
  assert.deepEqual(traceDifference(base, noise, false).lines, []);
  const exact = traceDifference(base, noise, true).lines.map(({ sign, text }) => sign + text);
  for (const line of [
    "+✓ endpoint 127.0.0.1:9117  status 503",
    "+    date: Tue, 03 Mar 2026 10:00:00 GMT",
    "+    x-id: 6f1e9e0e-0b5a-4a57-9c0e-3f7f9e6d1a2b",
  ])
    assert.ok(exact.includes(line), `${line}\n${exact.join("\n")}`);
});

test("statuses, lines of files and numbers that are no ports count", () => {
  assert.equal(difference(changed(["503", "502"])).length > 0, true);
  assert.equal(difference(changed(["shop.example.com", "shop.example.org"])).length > 0, true);
  assert.equal(difference(changed(['"count":2', '"count":3'], ["debug=1", "debug=2"])).length > 0, true);
});

test("of a long body the first lines are compared one by one, all of it by its digest", () => {
  const body = (last: string) => {
    const text = `${"line\n".repeat(100_000)}${last}`;
    return changed(["dHJ5IGFnYWluIGluIGEgc2Vjb25k", Buffer.from(text).toString("base64")]);
  };
  const { lines } = traceDifference(body("a"), body("b"), false);
  assert.ok(lines.length < 10);
  assert.match(lines.find(({ sign }) => sign === "+")?.text ?? "", /all of it: SHA-256 [\da-f]{12}…$/);
});

test("of a body in one long line, what is not shown counts too", () => {
  const body = (last: string) =>
    changed(["dHJ5IGFnYWluIGluIGEgc2Vjb25k", Buffer.from(`${"x".repeat(100_000)}${last}`).toString("base64")]);
  const { lines } = traceDifference(body("a"), body("b"), false);
  assert.match(lines.find(({ sign }) => sign === "+")?.text ?? "", /all of it: SHA-256/);
});

test("events of another version cannot be compared", () => {
  const other = [{ message: { type: "policy", kind: "new" } }];
  assert.throws(() => traceDifference(EVENTS, other, false), TypeError);
});
