import assert from "node:assert/strict";
import { test } from "node:test";
import { compareHpack } from "../../../../test/fuzz/http2/hpack.ts";

test("nghttp2 and we read each other's header blocks, and agree on broken ones", async () => {
  // npm run fuzz -- hpack takes it from here.
  for (let seed = 1; seed <= 15; seed++) assert.equal(await compareHpack(seed), undefined, `seed ${seed}`);
});
