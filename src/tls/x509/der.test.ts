import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import {
  bitString,
  element,
  encodeLength,
  integer,
  oid,
  readElements,
  sequence,
  setOf,
  time,
  utf8String,
} from "./der.ts";

const hex = (bytes: Buffer): string => bytes.toString("hex");

suite("DER", () => {
  test("lengths take as few bytes as possible, and say how many", () => {
    for (const [length, expected] of [
      [0, "00"],
      [127, "7f"],
      [128, "8180"],
      [255, "81ff"],
      [256, "820100"],
      [65_535, "82ffff"],
      [65_536, "83010000"],
    ] as const)
      assert.equal(hex(encodeLength(length)), expected);
    fc.assert(
      fc.property(fc.nat({ max: 0xffff_ffff }), (length) => {
        const [first = 0, ...others] = encodeLength(length);
        if (length < 128) assert.deepEqual([first, others], [length, []]);
        else {
          assert.equal(first, 0x80 | others.length);
          assert.notEqual(others[0], 0);
          assert.equal(
            others.reduce((sum, byte) => sum * 256 + byte, 0),
            length,
          );
        }
      }),
    );
  });

  test("elements that are written can be read", () => {
    const content = fc.uint8Array({ maxLength: 600 });
    const written = fc.array(fc.tuple(fc.integer({ min: 1, max: 0x1e }), content), { maxLength: 4 });
    fc.assert(
      fc.property(written, (elements) => {
        const bytes = Buffer.concat(elements.map(([tag, content]) => element(tag, content)));
        const read = readElements(bytes).map(({ tag, content }) => [tag, hex(content)]);
        assert.deepEqual(
          read,
          elements.map(([tag, content]) => [tag, hex(Buffer.from(content))]),
        );
      }),
    );
  });

  test("truncated elements and invalid lengths are rejected", () => {
    const whole = sequence(utf8String("x".repeat(300)));
    for (let length = 1; length < whole.length; length += 7)
      assert.throws(() => readElements(whole.subarray(0, length)), /not in DER/);
    for (const bytes of ["30", "3080", "3085010000000000", "30830100"])
      assert.throws(() => readElements(Buffer.from(bytes, "hex")), /not in DER/);
  });

  test("numbers are as short as possible and never negative", () => {
    for (const [bytes, expected] of [
      ["00", "020100"],
      ["000000", "020100"],
      ["7f", "02017f"],
      ["80", "02020080"],
      ["00ff", "020200ff"],
      ["0102", "02020102"],
    ] as const)
      assert.equal(hex(integer(Buffer.from(bytes, "hex"))), expected);
  });

  test("identifiers, bits, texts and sets", () => {
    assert.equal(hex(oid("1.2.840.113549.1.1.11")), "06092a864886f70d01010b");
    assert.equal(hex(oid("2.5.29.17")), "0603551d11");
    assert.equal(hex(bitString(Buffer.of(0x80), 7)), "03020780");
    assert.equal(hex(setOf(utf8String("é"))), "31040c02c3a9");
  });

  test("times have a two-digit year before 2050 and a four-digit year from 2050 on", () => {
    assert.equal(time(new Date("2049-12-31T23:59:59.999Z")).toString("latin1"), "\x17\x0d491231235959Z");
    assert.equal(time(new Date("2050-01-01T00:00:00Z")).toString("latin1"), "\x18\x0f20500101000000Z");
  });
});
