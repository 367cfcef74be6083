import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { latin1Slice } from "../../net/node-internals.ts";
import type { HeaderList } from "../message/message.ts";
import { ChunkedDecoder } from "./chunked.ts";
import { chunkHeader, LAST_CHUNK, trailerText } from "./serialize.ts";

interface Result {
  readonly body: string;
  /** Bytes used until the body was complete or wrong; -1 for wrong. */
  readonly used: number;
  readonly done: boolean;
  readonly error: string;
  readonly trailers: HeaderList;
}

/** Decodes `text` cut at the given places, each piece at another offset of a buffer with other bytes around it. */
function decode(text: string, cuts: readonly number[] = [], decoder = new ChunkedDecoder()): Result {
  const bytes = Buffer.from(text, "latin1");
  let body = "";
  const sink = {
    onBody: (buffer: Buffer, from: number, to: number): void => {
      assert.ok(to > from, "an empty run");
      body += latin1Slice(buffer, from, to);
    },
  };
  const places = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length), bytes.length])].sort((a, b) => a - b);
  let used = 0;
  for (let i = 0; i + 1 < places.length && !decoder.done; i++) {
    const piece = bytes.subarray(places[i], places[i + 1]);
    const buffer = Buffer.concat([Buffer.alloc(i % 5, "0"), piece, Buffer.from("\r\n0\r\n\r\n")]);
    const next = decoder.push(buffer, i % 5, (i % 5) + piece.length, sink);
    if (next === -1) {
      used = -1;
      break;
    }
    used += next - (i % 5);
  }
  return { body, used, done: decoder.done, error: decoder.error, trailers: decoder.trailers };
}

const ACCEPTED: readonly (readonly [string, string, HeaderList])[] = [
  ["0\r\n\r\n", "", []],
  ["5\r\nhello\r\n0\r\n\r\n", "hello", []],
  ["5\r\nhello\r\n00A\r\n, world!\r\n\r\n00\r\n\r\n", "hello, world!\r\n", []],
  ["000000000000001\r\na\r\n000000000000000\r\n\r\n", "a", []],
  ['1;a\r\na\r\n1;a=b;c="d\\"e\tf\xff"\r\nb\r\n0;last\r\n\r\n', "ab", []],
  ["0\r\nX-Sum:  1 \r\nEmpty:\r\n\r\n", "", ["x-sum", "1", "empty", ""]],
  ["0\r\nHost: b\r\nAuthorization: x\r\nok: 1\r\nContent-Type: y\r\nSet-Cookie: z\r\n\r\n", "", ["ok", "1"]],
];

const REFUSED: readonly string[] = [
  ...[
    "\r\n",
    " 5\r\n",
    "5 \r\n",
    "\t5\r\n",
    "+5\r\n",
    "-5\r\n",
    "0x5\r\n",
    "g\r\n",
    "5\n",
    "5\r5",
    ";a\r\n",
    "5_0\r\n",
  ],
  ...["5\0\r\n", "1000000000000000\r\n", "fffffffffffffff\r\n", "20000000000000\r\n", `${"0".repeat(15)}1\r\n`],
  ...[
    "5;\r\n",
    "5;=\r\n",
    "5;a=\r\n",
    "5; a\r\n",
    "5 ;a\r\n",
    "5;a =b\r\n",
    "5;a= b\r\n",
    "5;a b\r\n",
    "5;a\n",
    "5;a=b c\r\n",
  ],
  ...[
    '5;a="\r\n',
    '5;a="b\n"\r\n',
    '5;a="b"c\r\n',
    '5;a=b"c"\r\n',
    '5;a="\\\r"\r\n',
    "5;a\0\r\n",
    "5;a;;b\r\n",
    "5;a\r\r\n",
  ],
  ...["1\r\nab\r\n", "1\r\na\n0\r\n\r\n", "1\r\na\rb", "2\r\na\r\n0\r\n\r\n", "1\r\na0\r\n\r\n"],
  ...[
    "0\r\n\n",
    "0\r\n\rx",
    "0\r\n: a\r\n\r\n",
    "0\r\n a: b\r\n\r\n",
    "0\r\na\r\n\r\n",
    "0\r\na : b\r\n\r\n",
    "0\r\na: b\n\r\n",
  ],
  ...["0\r\na: b\r\n c\r\n\r\n", "0\r\na: \0\r\n\r\n", "0\r\na: b\rc: d\r\n\r\n"],
  ...["content-length: 1", "Transfer-Encoding: chunked", "connection: close", "upgrade: a"].map(
    (f) => `0\r\n${f}\r\n\r\n`,
  ),
  `1${";a=b".repeat(2000)}\r\n`,
  `0\r\n${"a: b\r\n".repeat(65)}\r\n`,
  `0\r\na: ${"b".repeat(9000)}\r\n\r\n`,
];

describe("ChunkedDecoder", () => {
  for (const [text, body, trailers] of ACCEPTED) {
    test(`reads ${JSON.stringify(text)} and leaves what follows`, () => {
      const expected = { body, used: text.length, done: true, error: "", trailers };
      assert.deepEqual(decode(text), expected);
      assert.deepEqual(decode(`${text}GET / HTTP/1.1\r\n`), expected);
      const everywhere = Array.from(text, (_, i) => i);
      assert.deepEqual(decode(text, everywhere).trailers, trailers);
    });
  }

  for (const text of REFUSED) {
    test(`rejects ${JSON.stringify(text.slice(0, 40))}`, () => {
      for (const cuts of [[], Array.from(text, (_, i) => i)]) {
        const result = decode(text, cuts);
        assert.equal(result.used, -1);
        assert.equal(result.done, false);
        assert.notEqual(result.error, "");
      }
    });
  }

  test("is not done before the last byte, and reads another body after reset", () => {
    const text = "3;a=b\r\nabc\r\n0\r\nx: y\r\n\r\n";
    const decoder = new ChunkedDecoder();
    for (let length = 0; length < text.length; length++) {
      const result = decode(text.slice(0, length), [], decoder);
      assert.deepEqual([result.done, result.error, result.used], [false, "", length]);
      decoder.reset();
    }
    assert.deepEqual(decode(text, [], decoder).trailers, ["x", "y"]);
    decoder.reset();
    assert.deepEqual([decoder.done, decoder.trailers], [false, []]);
    assert.equal(decode("junk", [], decoder).used, -1);
    decoder.reset();
    assert.equal(decode(LAST_CHUNK, [], decoder).done, true);
  });

  test("extensions are counted over the whole message", () => {
    const result = decode(`${"1;abc=defghijk\r\na\r\n".repeat(500)}0\r\n\r\n`);
    assert.equal(result.error, "chunk extensions are too long");
  });

  const data = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((c) => String.fromCharCode(c)), minLength: 1 });
  const cuts = fc.array(fc.nat(400), { maxLength: 12 });

  test("reads what the serializer writes, however the bytes are split", () => {
    const value = fc
      .string({ unit: fc.constantFrom("a", "Z", "\t", " ", "\xff", ":", "%") })
      .map((text) => text.trim());
    const field = fc.tuple(fc.constantFrom("x-a", "grpc-status", "x_b"), value);
    fc.assert(
      fc.property(fc.array(data), fc.array(field, { maxLength: 3 }), cuts, (chunks, fields, places) => {
        const trailers = fields.flat();
        const framed = chunks.map((chunk) => `${chunkHeader(chunk.length)}${chunk}\r\n`).join("");
        const text = framed + (trailers.length === 0 ? LAST_CHUNK : trailerText(trailers));
        const expected = { body: chunks.join(""), used: text.length, done: true, error: "", trailers };
        assert.deepEqual(decode(text, places), expected);
      }),
      { numRuns: 500 },
    );
  });

  test("damaged bodies give the same result however the bytes are split", () => {
    const damage = fc.tuple(
      fc.nat(60),
      fc.constantFrom("\r", "\n", "\r\n", "0", "5", ";", "=", '"', " ", "\0", "a: b\r\n", ""),
    );
    const text = '5;a="b\\c"\r\nhello\r\na\r\n0123456789\r\n0\r\nx-t: y\r\n\r\n';
    fc.assert(
      fc.property(damage, damage, fc.nat(2), cuts, ([at, piece], [at2, piece2], removed, places) => {
        const once = text.slice(0, at) + piece + text.slice(at + removed);
        const damaged = once.slice(0, at2) + piece2 + once.slice(at2);
        const whole = decode(damaged);
        const split = decode(damaged, places);
        assert.deepEqual(split, whole);
      }),
      { numRuns: 3000 },
    );
  });
});
