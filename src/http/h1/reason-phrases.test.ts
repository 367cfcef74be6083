import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { test } from "node:test";
import { REASON_PHRASES } from "./reason-phrases.ts";

test("reason phrases are those of Node.js", () => {
  assert.deepEqual(REASON_PHRASES, { ...STATUS_CODES });
});
