import assert from "node:assert/strict";
import { test } from "node:test";
import { decodedBound, decodeHuffman } from "./huffman.ts";

/** The text that `hex` decodes to; undefined when the code is invalid. */
function decode(hex: string): string | undefined {
  const bytes = Buffer.from(hex.replaceAll(" ", ""), "hex");
  const out = Buffer.alloc(decodedBound(bytes.length));
  const length = decodeHuffman(bytes, 0, bytes.length, out);
  return length < 0 ? undefined : out.toString("latin1", 0, length);
}

test("the texts of RFC 7541 appendix C", () => {
  assert.equal(decode("f1e3 c2e5 f23a 6ba0 ab90 f4ff"), "www.example.com");
  assert.equal(decode("a8eb 1064 9cbf"), "no-cache");
  assert.equal(decode("25a8 49e9 5ba9 7d7f"), "custom-key");
  assert.equal(decode("d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"), "Mon, 21 Oct 2013 20:13:21 GMT");
  assert.equal(decode("9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"), "https://www.example.com");
  assert.equal(
    decode(
      "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ),
    "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  );
  assert.equal(decode(""), "");
});

test("padding is shorter than a byte and consists of ones", () => {
  assert.equal(decode("07"), "0", "00000 and three ones");
  for (const [hex, why] of [
    ["06", "a zero in the padding"],
    ["00", "zeros as padding"],
    ["07ff", "padding of eleven bits"],
    ["ff", "padding of eight bits"],
    ["fffffffc", "EOS and two zeros"],
    ["ffffffff", "EOS and two ones"],
    ["07ffffffff", "EOS after a symbol"],
    ["fffe", "a code of 19 bits that is cut short"],
  ] as const) {
    assert.equal(decode(hex), undefined, why);
  }
  assert.equal(decode("fffffff3"), "\n", "a code of 30 bits");
});
