import assert from "node:assert/strict";
import { test } from "node:test";
import { toYaml } from "./yaml.ts";

test("texts that kubectl's parser would take for something else are quoted", () => {
  assert.equal(
    toYaml({ ":path": "::/0", value: "(?i)/a", on: ["on", "no", "12:30", "plain"] }),
    `{ ':path': '::/0', value: '(?i)/a', "on": [ "on", "no", "12:30", plain ] }\n`,
  );
});
