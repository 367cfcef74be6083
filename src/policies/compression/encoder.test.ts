import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync, gzipSync, zstdDecompressSync } from "node:zlib";
import { encoderStage, encodeWhole, MAX_WHOLE } from "./encoder.ts";

test("the memory of a worker's encoders is bounded, and returned once", () => {
  const open = [];
  for (let stage = encoderStage("br", 4); stage !== undefined; stage = encoderStage("br", 4)) open.push(stage);
  assert.ok(open.length > 10 && open.length < 100, `${open.length} encoders`);
  open[0]?.close();
  open[0]?.close();
  const again = encoderStage("br", 4);
  assert.notEqual(again, undefined);
  assert.equal(encoderStage("br", 4), undefined);
  again?.close();
  for (const stage of open) stage.close();
});

test("whole bodies are compressed independently of each other, at any level", () => {
  const text = Buffer.from("The quick brown fox jumps over the lazy dog. ".repeat(1000));
  const bodies = [text.subarray(0, 2000), Buffer.alloc(0), randomBytes(MAX_WHOLE), text.subarray(0, MAX_WHOLE), text];
  const decoders = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync };
  for (const level of [3, 1, 6])
    for (const body of [...bodies, ...bodies])
      for (const [coding, decode] of Object.entries(decoders) as [keyof typeof decoders, typeof gunzipSync][])
        assert.deepEqual(decode(encodeWhole(coding, level, body)), body, `${coding} ${level}, ${body.length} bytes`);
  assert.deepEqual(encodeWhole("gzip", 6, text.subarray(0, 2000)), gzipSync(text.subarray(0, 2000), { level: 6 }));
  const [first, again] = [
    encodeWhole("zstd", 3, text.subarray(0, 2000)),
    encodeWhole("zstd", 3, text.subarray(0, 2000)),
  ];
  assert.deepEqual(again, first);
});
