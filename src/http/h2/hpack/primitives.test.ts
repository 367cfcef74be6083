import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../../test/helpers/property.ts";
import { BAD_INTEGER, INTEGER_BOUND, READER, TRUNCATED, writeInteger, writeString } from "./primitives.ts";

const PREFIXES = [0x0f, 0x1f, 0x3f, 0x7f];
/** Values around which the number of bytes changes, for each prefix. */
const EDGES = PREFIXES.flatMap((prefix) =>
  [0, 0x80, 0x4000, 0x20_0000].flatMap((more) => [prefix + more - 1, prefix + more, prefix + more + 1]),
);

/** Reads what follows a prefix, as the decoder does. */
function read(bytes: Buffer, prefix: number): number {
  const first = (bytes[0] as number) & prefix;
  return first < prefix ? first : READER.integer(bytes, 1, bytes.length, prefix);
}

test("integers are read as they were written, whatever their prefix, without changing the bits before it", () => {
  const value = fc.oneof(fc.constantFrom(...EDGES), fc.nat(2 ** 28 - 1));
  fc.assert(
    fc.property(fc.constantFrom(...PREFIXES), value, (prefix, number) => {
      const out = Buffer.alloc(INTEGER_BOUND + 1, 0xee);
      const pattern = prefix === 0x7f ? 0x80 : prefix + 1;
      const end = writeInteger(out, 0, pattern, prefix, number);
      assert.ok(end <= INTEGER_BOUND);
      assert.equal(out[end], 0xee, "nothing is written after the end");
      assert.equal((out[0] as number) & ~prefix, pattern);
      assert.equal(read(out.subarray(0, end), prefix), number);
    }),
  );
});

test("integers that never end or are too large are rejected", () => {
  for (const [bytes, error] of [
    [[0xff], TRUNCATED],
    [[0xff, 0x80, 0x80], TRUNCATED],
    [[0xff, 0x80, 0x80, 0x80, 0x80, 0x01], BAD_INTEGER],
    [[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], BAD_INTEGER],
  ] as const) {
    assert.equal(read(Buffer.from(bytes), 0x7f), -1);
    assert.equal(READER.error, error);
  }
});

test("strings are read as they were written, around the lengths where the encoding changes", () => {
  for (const length of [0, 1, 23, 24, 25, 126, 127, 128, 254, 255, 256, 20_000]) {
    const text = Array.from({ length }, (_, i) => String.fromCharCode(i & 0xff)).join("");
    const out = Buffer.alloc(length + INTEGER_BOUND + 1, 0xee);
    const end = writeString(out, 0, text);
    assert.equal(out[end], 0xee, "nothing is written after the end");
    assert.ok(READER.string(out, 0, end));
    const { bytes, start, end: stop, at } = READER;
    assert.deepEqual([bytes.toString("latin1", start, stop) === text, at], [true, end], String(length));
    if (length > 0) assert.equal(READER.string(out, 0, end - 1), false, "one byte is missing");
  }
});
