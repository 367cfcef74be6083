import assert from "node:assert/strict";
import { test } from "node:test";
import { encoderStage } from "./encoder.ts";

test("encoders of one worker have a bound, and give their memory back once", () => {
  const open = [];
  for (let stage = encoderStage("br", 4); stage !== undefined; stage = encoderStage("br", 4)) open.push(stage);
  assert.ok(open.length > 10 && open.length < 100, `${open.length} encoders`);
  open[0]?.close();
  open[0]?.close();
  const again = encoderStage("br", 4);
  assert.notEqual(again, undefined);
  assert.equal(encoderStage("br", 4), undefined);
  again?.close();
  for (const stage of open) stage.close();
});
