import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePriority } from "./priority.ts";

test("priorities are read, and what they do not say has its default", () => {
  const texts = ["", "u=1", "u=7, i", "i=?0, u=2", "i", "u=9", "u=2;x=1, i=?1", "u=1, i, u=5 ,i=?0", "u=1,u=x"];
  const read = texts.map((text) => {
    const { urgency, incremental } = parsePriority(text);
    return `${urgency}${incremental ? "i" : ""}`;
  });
  assert.deepEqual(read, ["3", "1", "7i", "2", "3i", "3", "2i", "5", "3"]);
});
