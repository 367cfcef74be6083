import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { rereadable } from "./load.ts";

test("what can be read only once is read; other sources stay as they are", () => {
  const descriptor = openSync(fileURLToPath(import.meta.url), "r");
  const path = `/proc/self/fd/${descriptor}`;
  const source = rereadable({ kind: "file", path });
  closeSync(descriptor);
  assert.ok(source.kind === "text" && source.name === path);
  assert.match(source.text, /^import assert/);
  for (const each of [
    { kind: "file", path: "gateway.yaml" },
    { kind: "file", path: "/dev/fd/999" },
    { kind: "text", text: "{}" },
  ] as const)
    assert.equal(rereadable(each), each);
});
