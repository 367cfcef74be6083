import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigReference, policyPage } from "./config-docs.ts";
import type { JsonSchema } from "./config-schema.ts";

const text: JsonSchema = { type: "string", description: "A text." };
const shared: JsonSchema = { type: "object", properties: { a: text, b: text }, required: ["a"] };
const set: JsonSchema = { type: "object", properties: { one: text, two: text, three: text } };

/** A configuration with two policies: both use Shared, only `first` uses Own. */
const ROOT: JsonSchema = {
  description: "The file.",
  properties: {
    first: { $ref: "#/$defs/FirstPolicy" },
    wide: { type: "object", properties: { ...set.properties, four: text } },
  },
  $defs: {
    FirstPolicy: {
      description: "Does something.",
      type: "object",
      properties: { own: { $ref: "#/$defs/Own" }, shared: { $ref: "#/$defs/Shared", description: "Its own words." } },
    },
    SecondPolicy: {
      description: "Is a choice.",
      anyOf: [
        { type: "object", properties: { shared: { $ref: "#/$defs/Shared" }, on: { type: "boolean", default: false } } },
        { type: "object", properties: { off: { type: "string", const: "all" } } },
      ],
    },
    Own: { type: "object", properties: { x: { type: "integer", minimum: 1, maximum: 9, description: "A number." } } },
    Shared: shared,
    Set: set,
  },
};

const reference = new ConfigReference(ROOT, ["first", "second"]);
const headings = (page: string): string[] => [...page.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);

test("a shape is described once: on the page of the only policy that uses it, else with the configuration", () => {
  assert.deepEqual(headings(reference.configuration()), ["Top level", "`wide`", "Shared"]);
  assert.deepEqual(headings(reference.policy("first")), ["`first`", "Own"]);
  assert.deepEqual(headings(reference.policy("second")), ["`second`"]);
});

test("fields link to the page that describes their type, and keep their own descriptions", () => {
  const page = reference.policy("first");
  assert.match(page, /^\| `own` \| \[Own\]\(#own\) \|/m);
  assert.match(page, /^\| `shared` \| \[Shared\]\(\.\.\/configuration\.md#shared\) \| {2}\| Its own words\. \|$/m);
  assert.match(page, /^\| `x` \| number 1–9 \| {2}\| A number\. \|$/m);
  assert.match(
    reference.configuration(),
    /^\| `first` \| \[first\]\(policies\/first\.md\) \| {2}\| Does something\. \|$/m,
  );
  assert.match(reference.configuration(), /^\| `a` \| string \| required \| A text\. \|$/m);
});

test("an object with all fields of another has one row for them", () => {
  const [, wide = ""] = reference.configuration().split("## `wide`");
  assert.deepEqual(
    [
      ...wide
        .split("\n## ", 1)
        .join("")
        .matchAll(/^\| (?!Field|-)([^|]*) \|/gm),
    ].map(([, cell]) => cell),
    ["`four`", "fields of [Set](#set)"],
  );
});

test("a choice shows a table for the alternative with several fields, and lists the others", () => {
  const page = reference.policy("second");
  assert.match(page, /^\| `on` \| boolean \| `false` \|/m);
  assert.match(page, /^Or:\n\n- `off` \(`all`\)$/m);
});

test("pages of policies are named after their kinds", () => {
  assert.equal(policyPage("backendTLS"), "policies/backend-tls.md");
  assert.equal(policyPage("apiKey"), "policies/api-key.md");
});
