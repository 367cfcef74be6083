import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { appRoot } from "../../base/app-root.ts";
import type { Fields } from "../../base/fields.ts";
import { ASSUMPTIONS, type AssumptionName, readAssumptions } from "../assumptions.ts";
import { BadFacts } from "../facts.ts";

const validate = new Ajv2020({ strict: false }).compile(
  JSON.parse(readFileSync(`${appRoot}schema/expectations.json`, "utf8")),
);

function fits(assume: Fields): boolean {
  return validate({ cases: [{ name: "one", request: { url: "http://a/" }, assume, expect: { status: 200 } }] });
}

function isRead(assume: Fields): boolean {
  try {
    readAssumptions(assume);
    return true;
  } catch (error) {
    assert.ok(error instanceof BadFacts);
    return false;
  }
}

/** Values that some assumption takes, and values that none does. */
const VALUES: readonly unknown[] = [
  ...["allow", "deny", "fail", "under", "over", "valid", "invalid", "healthy", "unhealthy", "none", "refused", "x", ""],
  ...[0, 0.5, 1, 99, 200, 503, 600, true, null, "2026-01-31T12:00:00Z"],
  ...[{}, { sub: "a" }, { status: 503 }, { status: 99 }, { status: "503" }, { body: "x" }, { body: 1 }, { stat: 1 }],
  ...[
    { headers: { a: "b" } },
    { headers: { a: 1 } },
    { metadata: { a: 1 } },
    { metadata: 1 },
    { "10.0.0.1:80": "healthy" },
  ],
  { "10.0.0.1:80": "ill" },
];

test("the schema takes exactly the values that are read, for every assumption and place", () => {
  // A file of cases names a file there.
  const { clientCertificate: _file, ...others } = ASSUMPTIONS;
  for (const [name, { places = [] }] of Object.entries(others)) {
    const placed = typeof places === "string" ? ["default/shop"] : places;
    for (const written of [name, ...placed.map((place) => `${name}@${place}`)])
      for (const value of VALUES) {
        const assume = { [written]: value };
        assert.equal(fits(assume), isRead(assume), JSON.stringify(assume));
      }
  }
});

test("every value that is shown as an example fits, and no other name", () => {
  const examples: Partial<Record<AssumptionName, readonly unknown[]>> = Object.fromEntries(
    Object.entries(ASSUMPTIONS).map(([name, { values }]) => [
      name,
      values
        .filter((value) => !value.includes("…}"))
        .map((value) => (/^[{\d]/.test(value) && name !== "time" ? JSON.parse(value) : value)),
    ]),
  );
  for (const [name, values] of Object.entries(examples))
    for (const value of values) assert.ok(fits({ [name]: value }), `${name}: ${JSON.stringify(value)}`);
  assert.ok(!fits({ respons: 503 }));
  assert.ok(!fits({ "extAuthz@here": "deny" }));
});
