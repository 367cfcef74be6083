import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { SampleRing } from "./sample-ring.ts";
import { entryOf } from "./testing/sample-writer.ts";

const KIB = 1024;

function texts(ring: SampleRing): string[] {
  return ring.entries().map(String);
}

test("the newest entries are kept whole, in their order", () => {
  const ring = SampleRing.create(4 * KIB);
  assert.deepEqual(texts(ring), []);
  const all: string[] = [];
  for (let i = 0; i < 500; i++) {
    const text = `${i}:${"x".repeat((i * 7) % 100)}`;
    all.push(text);
    assert.equal(ring.add(Buffer.from(text)), true);
    const found = texts(ring);
    assert.deepEqual(found, all.slice(-found.length));
    // All fits in the beginning, and later at least what the largest entry does not displace.
    assert.ok(found.length === all.length || found.join("").length > 3 * KIB - 8 * found.length);
  }
});

test("an entry of more than a thirty-second of the ring is left out, and does not displace others", () => {
  const ring = SampleRing.create(4 * KIB);
  ring.add(Buffer.from("small"));
  assert.equal(ring.add(Buffer.alloc(129)), false);
  assert.equal(ring.add(Buffer.alloc(128)), true);
  assert.deepEqual(
    ring.entries().map(({ length }) => length),
    [5, 128],
  );
});

test("a replacement continues in the memory, and another reader finds the same", () => {
  const first = SampleRing.create(4 * KIB);
  first.add(Buffer.from("a"));
  const second = new SampleRing(first.buffer);
  second.add(Buffer.from("b"));
  assert.deepEqual(texts(new SampleRing(first.buffer)), ["a", "b"]);
});

test("positions wrap around", () => {
  const ring = SampleRing.create(64 * 32);
  // The cells of the oldest entry and of the end, shortly before the largest number.
  new Int32Array(ring.buffer).set([0x7fff_fff0, 0x7fff_fff0], 1);
  for (let i = 0; i < 100; i++) {
    ring.add(Buffer.from(`entry ${i}`));
    assert.equal(texts(ring).at(-1), `entry ${i}`);
  }
  assert.ok(texts(ring).length > 50);
});

test("a reader accepts no entry that is written over, whenever the writer is killed", async () => {
  const ring = SampleRing.create(8 * KIB);
  for (let round = 0; round < 5; round++) {
    // No thread writes so many entries that its numbers reach those of the next.
    const workerData = { buffer: ring.buffer, first: round * 100_000_000 };
    const writer = new Worker(new URL("./testing/sample-writer.ts", import.meta.url), { workerData });
    try {
      await once(writer, "online");
      for (let read = 0; read < 20_000; ) {
        const entries = texts(ring);
        if (entries.length === 0) await new Promise(setImmediate);
        let before = -1;
        for (const text of entries) {
          const number = Number.parseInt(text, 10);
          assert.equal(text, entryOf(number).toString());
          assert.ok(number > before, "in their order");
          before = number;
        }
        read += entries.length;
      }
    } finally {
      await writer.terminate();
    }
  }
});
