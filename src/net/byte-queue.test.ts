import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteQueue } from "./byte-queue.ts";

test("bytes come out as they went in, whatever the sizes of the pieces", () => {
  const held = new ByteQueue();
  const source = Buffer.from(Array.from({ length: 10_000 }, (_, i) => i & 255));
  let added = 0;
  let taken = 0;
  for (let step = 1; taken < source.length; step++) {
    const more = Math.min(source.length - added, (step * 37) % 501);
    held.append(source, added, added + more);
    added += more;
    const use = Math.min(held.length, (step * 53) % 307);
    assert.deepEqual(held.bytes.subarray(held.start, held.start + use), source.subarray(taken, taken + use));
    if (held.length > 0) held.consume(held.start + use);
    taken += use;
    assert.equal(held.length, added - taken);
  }
});

test("nothing is kept when all is used", () => {
  const held = new ByteQueue();
  held.append(Buffer.alloc(5000), 0, 5000);
  held.consume(held.end);
  assert.equal(held.bytes.length, 0);
});
