import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/helpers/property.ts";
import { Base64Decoder, MessageEncoder } from "./base64.ts";

/** A message with its prefix. */
function framed(payload: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(payload.length, 1);
  return Buffer.concat([prefix, payload]);
}

/** Cuts bytes into pieces of the given sizes; the last one has the rest. */
function pieces(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const cut: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    cut.push(bytes.subarray(at, at + size));
    at += size;
  }
  cut.push(bytes.subarray(at));
  return cut;
}

function decodeAll(texts: readonly string[]): Buffer | undefined {
  const decoder = new Base64Decoder();
  const decoded: Buffer[] = [];
  for (const text of texts) {
    const bytes = decoder.decode(Buffer.from(text));
    if (bytes === undefined) return undefined;
    decoded.push(bytes);
  }
  return decoder.complete ? Buffer.concat(decoded) : undefined;
}

const payloads = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 });
const sizes = fc.array(fc.nat({ max: 12 }), { maxLength: 30 });

test("messages survive encoding and decoding, however they are split", () => {
  fc.assert(
    fc.property(payloads, sizes, sizes, (messages, inward, outward) => {
      const bytes = Buffer.concat(messages.map(framed));
      const encoder = new MessageEncoder();
      const encoded = pieces(bytes, inward).map((piece) => encoder.encode(piece).toString("latin1"));
      const text = Buffer.from(encoded.join(""));
      assert.deepEqual(decodeAll(pieces(text, outward).map(String)), bytes);
    }),
  );
});

test("a message can be decoded as soon as its last byte has arrived", () => {
  const encoder = new MessageEncoder();
  for (const payload of ["a", "bc", "def", ""]) {
    const message = framed(Buffer.from(payload));
    const first = encoder.encode(message.subarray(0, 4)).toString();
    const text = first + encoder.encode(message.subarray(4)).toString();
    assert.deepEqual(decodeAll([text]), message);
  }
});

test("padding may be anywhere between groups", () => {
  assert.equal(String(decodeAll(["YQ==YmM=ZGVm"])), "abcdef");
  assert.equal(String(decodeAll(["YQ", "=", "=YmM", "="])), "abc");
});

test("invalid base64 is rejected, not skipped", () => {
  for (const text of ["YW J", "YW\n=", "YQ=a", "=QAA", "Y===", "YR==", "YWJ=", "YW-_", "Ykä="])
    assert.equal(decodeAll([text]), undefined, text);
  for (const text of ["Y", "YQ", "YWI", "YWJjY"]) assert.equal(decodeAll([text]), undefined, `${text} is cut off`);
});
