import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcReader } from "./grpc-frames.ts";

function message(flags: number, content: string): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags, 0);
  prefix.writeUInt32BE(content.length, 1);
  return Buffer.concat([prefix, Buffer.from(content)]);
}

/** Reads `bytes` in pieces of `size`; the last entry is the reason for which it has stopped. */
function read(bytes: Buffer, size: number, maxContent: number): unknown[] {
  const reader = new GrpcReader(maxContent);
  const seen: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const reason = reader.read(bytes.subarray(at, at + size), ({ bytes: length, compressed, content }) =>
      seen.push([length, compressed, String(content.bytes), content.truncated]),
    );
    if (reason !== undefined) return [...seen, reason];
  }
  return seen;
}

test("messages with their sizes, their flag and their beginning, however their bytes are split", () => {
  const bytes = Buffer.concat([
    message(0, "one"),
    message(0, ""),
    message(1, "compressed"),
    message(0, "y".repeat(1000)),
  ]);
  const expected = [
    [3, false, "one", false],
    [0, false, "", false],
    [10, true, "compres", true],
    [1000, false, "yyyyyyy", true],
  ];
  for (const size of [1, 4, 5, 6, 100, bytes.length]) assert.deepEqual(read(bytes, size, 7), expected);
  assert.deepEqual(
    read(bytes, 100, 0),
    expected.map(([length, compressed]) => [length, compressed, "", length !== 0]),
  );
});

test("flags that gRPC does not have end it", () => {
  const bytes = Buffer.concat([message(0, "one"), message(128, "trailers of gRPC-Web")]);
  for (const size of [1, bytes.length])
    assert.deepEqual(read(bytes, size, 3), [[3, false, "one", false], "the flags of a message are not those of gRPC"]);
});
