import assert from "node:assert/strict";
import { test } from "node:test";
import { playFlow } from "../../../test/fuzz/http2/flow.ts";

test("no credit leaks, whatever streams do and however they end", async () => {
  // npm run fuzz -- flow takes it from here.
  for (let seed = 1; seed <= 100; seed++) assert.equal(await playFlow(seed), undefined, `seed ${seed}`);
});
