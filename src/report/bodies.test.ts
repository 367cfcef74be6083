import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyValue, bytesOf, encodingOf, readBody, textOfBody } from "./bodies.ts";
import { decompress } from "./decompress.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("base64 is read in both alphabets, and as far as it goes", () => {
  assert.deepEqual(bytesOf("-_-_"), bytesOf("+/+/"));
  assert.equal(Buffer.from(bytesOf("YWJjZ")).toString(), "abc");
  assert.equal(Buffer.from(bytesOf("YW Jj\n")).toString(), "abc");
});

test("a body that ends within a character is text up to there; a body with zero bytes is not text", () => {
  assert.equal(textOfBody(Buffer.from("größe").subarray(0, 3)), "gr");
  assert.equal(textOfBody(Buffer.from("a\0b")), undefined);
  assert.equal(textOfBody(Buffer.from([0xff, 0x61])), undefined);
});

test("of a long body its beginning is shown as it is, although it is JSON", () => {
  const json = JSON.stringify(Array(40_000).fill(1));
  const { text, note } = readBody(base64(json), "", false, decompress);
  assert.equal(text, json.slice(0, 65_536));
  assert.match(note, /the first 64 KiB/);
  assert.equal(bodyValue(base64(json), "", decompress), json.slice(0, 65_536));
});

test("the encoding of a message is read whatever its case", () => {
  assert.equal(encodingOf({ headers: { "content-encoding": " GZIP " } }), "gzip");
  assert.equal(encodingOf({}), "");
});
