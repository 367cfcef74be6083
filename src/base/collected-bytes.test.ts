import assert from "node:assert/strict";
import { test } from "node:test";
import { CollectedBytes } from "./collected-bytes.ts";

test("bytes are the same however they arrive", () => {
  const text = Array.from({ length: 30_000 }, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
  const source = Buffer.from(text);
  for (const length of [1, 7, 4095, 4096, 4097, 20_000]) {
    const collected = new CollectedBytes();
    for (let at = 0; at < source.length; at += length)
      collected.append(source, at, Math.min(source.length, at + length));
    assert.equal(collected.size, source.length);
    assert.equal(Buffer.concat(collected.pieces).toString(), text);
    assert.equal(collected.whole().toString(), text);
    collected.append(source, 0, 3);
    collected.append(source, 3, 5);
    collected.adopt(Buffer.from("|"));
    collected.append(source, 0, 2);
    assert.equal(collected.whole().toString(), `${text}abcde|ab`);
    collected.clear();
    assert.equal(collected.whole().length, 0);
  }
});

test("pieces of one byte share blocks, and bytes are copied", () => {
  const collected = new CollectedBytes();
  const source = Buffer.from("x");
  for (let i = 0; i < 100_000; i++) collected.append(source, 0, 1);
  source.fill("y");
  assert.ok(collected.pieces.length < 30, `${collected.pieces.length} pieces`);
  assert.equal(collected.whole().toString(), "x".repeat(100_000));
});
