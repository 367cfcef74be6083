import assert from "node:assert/strict";
import { test } from "node:test";
import { ChunkBatches } from "./chunk-batches.ts";

test("entries of one exporter wait for others, for a short time, and go together", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: [string, number][] = [];
  const batches = new ChunkBatches((exporter, { count }) => sent.push([exporter, count]));
  batches.add("a", new Uint8Array(10));
  batches.add("b", new Uint8Array(10));
  batches.add("a", new Uint8Array(10));
  assert.deepEqual(sent, []);
  t.mock.timers.tick(200);
  assert.deepEqual(sent.splice(0), [
    ["a", 2],
    ["b", 1],
  ]);
  t.mock.timers.tick(1000);
  assert.deepEqual(sent, [], "nothing is sent when there is nothing");
});

test("many go at once, and large ones; a flush leaves nothing behind", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const sent: number[] = [];
  const batches = new ChunkBatches((_exporter, { count }) => sent.push(count));
  for (let i = 0; i < 256; i++) batches.add("a", new Uint8Array(1));
  batches.add("a", new Uint8Array(100_000));
  assert.deepEqual(sent, [256, 1]);
  batches.add("a", new Uint8Array(1));
  batches.flush();
  batches.flush();
  t.mock.timers.tick(1000);
  assert.deepEqual(sent, [256, 1, 1]);
});
