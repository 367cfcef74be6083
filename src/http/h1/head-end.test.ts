import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { findHeadEnd, prefixError, skipLeadingCrlf } from "./head-end.ts";

function bytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

describe("findHeadEnd", () => {
  test("finds the first CRLFCRLF within the bounds, as a plain search does", () => {
    const text = fc.string({ unit: fc.constantFrom("\r", "\n", "\r\n", "\r\n\r\n", "a", "bcde"), maxLength: 30 });
    fc.assert(
      fc.property(text, fc.nat(5), fc.nat(40), (content, from, length) => {
        const buffer = bytes(`${content}\r\n\r\n`);
        const end = Math.min(length, buffer.length);
        const found = buffer.toString("latin1", 0, end).indexOf("\r\n\r\n", from);
        assert.equal(findHeadEnd(buffer, from, end), found < 0 ? -1 : found + 4);
      }),
      { numRuns: 3000 },
    );
  });

  test("a search may go on three bytes before the end of the last one", () => {
    const buffer = bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for (let end = 0; end < buffer.length; end++) {
      assert.equal(findHeadEnd(buffer, 0, end), -1);
      assert.equal(findHeadEnd(buffer, Math.max(0, end - 3), buffer.length), buffer.length);
    }
  });
});

describe("prefixError", () => {
  const HEAD = bytes("GET / HTTP/1.1\r\nHost: a\r\nX:\ty\xff\r\n\r\n");

  test("accepts any beginning of a valid head, wherever an earlier call stopped", () => {
    for (let end = 0; end <= HEAD.length; end++) {
      for (let from = 0; from <= end; from++) assert.equal(prefixError(HEAD, 0, end, from), undefined);
    }
  });

  const REFUSED: readonly (readonly [string, string])[] = [
    ["a TLS client hello", "\x16\x03\x01\x02"],
    ["a space", " GET"],
    ["a second empty line", "\r\n"],
    ["LF at the start", "\n"],
    ["LF alone", "GET / HTTP/1.1\nHo"],
    ["CR alone", "GET / HTTP/1.1\rHo"],
    ["NUL", "GET /\0"],
    ["DEL", "GET /\x7f"],
    ["escape", "GET / HTTP/1.1\r\nA: \x1b"],
  ];
  for (const [name, text] of REFUSED) {
    test(`rejects ${name} at once, in one piece or byte by byte`, () => {
      const buffer = bytes(text);
      assert.equal(prefixError(buffer, 0, buffer.length)?.code, "TG_INVALID_REQUEST");
      let found = false;
      for (let end = 1; end <= buffer.length; end++) found ||= prefixError(buffer, 0, end, end - 1) !== undefined;
      assert.ok(found);
    });
  }

  test("does not look at bytes beyond the end", () => {
    assert.equal(prefixError(bytes("GET\r\0"), 0, 4), undefined);
    assert.equal(prefixError(bytes("\r\0"), 0, 1), undefined);
  });
});

test("skipLeadingCrlf skips one empty line, if it is complete", () => {
  assert.equal(skipLeadingCrlf(bytes("\r\nGET"), 0, 5), 2);
  assert.equal(skipLeadingCrlf(bytes("\r\n\r\nGET"), 0, 7), 2);
  assert.equal(skipLeadingCrlf(bytes("\r\n"), 0, 1), 0);
  assert.equal(skipLeadingCrlf(bytes("\nGET"), 0, 4), 0);
  assert.equal(skipLeadingCrlf(bytes("x\r\nGET"), 1, 6), 3);
});
