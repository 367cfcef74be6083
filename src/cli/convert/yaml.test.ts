import assert from "node:assert/strict";
import { test } from "node:test";
import { toYaml } from "./yaml.ts";

test("texts that kubectl's parser would take for something else are quoted", () => {
  assert.equal(
    toYaml({ value: "(?i)/a", on: ["on", "no", "12:30", "plain"] }),
    `{ value: '(?i)/a', "on": [ "on", "no", "12:30", plain ] }\n`,
  );
});
