import assert from "node:assert/strict";
import { test } from "node:test";
import { LogRing, type RingSpan } from "./log-ring.ts";

/** Whole lines of so many bytes together, different from call to call. */
function linesOf(bytes: number, mark: string): Buffer {
  return Buffer.from(`${mark.repeat(bytes - 1)}\n`);
}

function put(ring: LogRing, lines: Uint8Array): RingSpan {
  const part = ring.put(lines);
  assert.ok(part !== undefined, "no room");
  return part;
}

const BATCH = 64 * 1024;

test("lines over the limit are dropped and counted once; lines that were read make room again", () => {
  const main = new LogRing();
  const worker = new LogRing(main.memory);
  const parts: RingSpan[] = [];
  for (let i = 0; i < 64; i++) parts.push(put(worker, linesOf(BATCH, "x")));
  assert.equal(worker.put(Buffer.from("a\nb\n")), undefined);
  assert.equal(main.takeDropped(), 2);
  assert.equal(main.takeDropped(), 0);
  const [first] = parts;
  assert.ok(first !== undefined);
  assert.equal(Buffer.from(main.read(first)).compare(linesOf(BATCH, "x")), 0);
  main.free(first);
  put(worker, linesOf(BATCH, "y"));
  assert.equal(worker.put(Buffer.from("c\n")), undefined);
});

test("lines of any size are read unchanged while the main thread is up to 40 batches behind", () => {
  const main = new LogRing();
  const worker = new LogRing(main.memory);
  const flying: { readonly part: RingSpan; readonly lines: Buffer }[] = [];
  const read = (): void => {
    const oldest = flying.shift();
    assert.ok(oldest !== undefined);
    assert.equal(Buffer.from(main.read(oldest.part)).compare(oldest.lines), 0);
    main.free(oldest.part);
  };
  for (let i = 0; i < 300; i++) {
    const lines = linesOf(1 + ((i * 7919) % 100_003), String.fromCharCode(0x61 + (i % 26)));
    flying.push({ part: put(worker, lines), lines });
    if (flying.length > 40) read();
  }
  while (flying.length > 0) read();
  assert.equal(main.takeDropped(), 0);
});

test("while the main thread keeps up, batches share the same memory, and one as large as the ring fits", () => {
  const main = new LogRing();
  const worker = new LogRing(main.memory);
  for (const size of [BATCH, 10, 4 * 1024 * 1024, BATCH]) {
    const part = put(worker, linesOf(size, "z"));
    assert.deepEqual(part, { start: 0, length: size });
    assert.equal(main.read(part).length, size);
    main.free(part);
  }
});
