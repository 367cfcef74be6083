import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { PieceQueue } from "./piece-queue.ts";

test("bytes come out as they went in, whatever their pieces were", () => {
  const append = fc.oneof(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 900, max: 5000 }));
  const steps = fc.array(fc.tuple(fc.boolean(), append));
  fc.assert(
    fc.property(steps, (all) => {
      const queue = new PieceQueue();
      let next = 0;
      let expected = 0;
      let length = 0;
      for (const [adds, size] of all) {
        if (adds) {
          // Somewhere within a larger buffer.
          const bytes = Buffer.from(Array.from({ length: size + 2 }, (_, i) => (next + i - 1) & 0xff));
          queue.append(bytes, 1, 1 + size);
          next += size;
          length += size;
        } else {
          const taken = Math.min(size, queue.first?.length ?? 0);
          for (const byte of queue.first?.subarray(0, taken) ?? []) assert.equal(byte, expected++ & 0xff);
          if (taken > 0) queue.consume(taken);
          length -= taken;
        }
        assert.equal(queue.length, length);
      }
    }),
  );
});

test("single bytes take little more memory than they are", () => {
  const queue = new PieceQueue();
  for (let i = 0; i < 100_000; i++) queue.append(Buffer.of(i & 0xff), 0, 1);
  let pieces = 0;
  let memory = 0;
  for (; queue.first !== undefined; queue.consume(queue.first.length)) {
    pieces++;
    memory += queue.first.buffer.byteLength;
  }
  assert.ok(pieces < 100 && memory < 110_000, `${pieces} pieces, ${memory} bytes`);
});
