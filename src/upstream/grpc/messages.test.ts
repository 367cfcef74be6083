import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, MessageReader } from "./messages.ts";

const MIB = 1024 * 1024;

/** Reads `bytes` in pieces of `size`; each piece is overwritten afterwards, as buffers of sockets are. */
function read(bytes: Buffer, size: number): { messages: string[]; refused: string | undefined; incomplete: boolean } {
  const messages: string[] = [];
  const reader = new MessageReader((message) => messages.push(message.toString("latin1")));
  const piece = Buffer.alloc(size);
  let refused: string | undefined;
  for (let at = 0; at < bytes.length && refused === undefined; at += size) {
    const length = bytes.copy(piece, 0, at, at + size);
    const status = reader.push(piece, 0, length);
    if (status !== undefined) refused = `${status.code} ${status.message}`;
    piece.fill(0xff);
  }
  return { messages, refused, incomplete: reader.incomplete };
}

test("messages are read from pieces of any size, empty ones too", () => {
  const texts = ["hello", "", "x".repeat(3000), "end"];
  const bytes = Buffer.concat(texts.map((text) => frame(Buffer.from(text))));
  for (const size of [1, 2, 4, 5, 6, 7, 100, 2999, bytes.length])
    assert.deepEqual(read(bytes, size), { messages: texts, refused: undefined, incomplete: false }, String(size));
});

test("a message that is cut off is incomplete, whether in its prefix or after it", () => {
  const bytes = frame(Buffer.from("hello"));
  for (const length of [1, 4, 5, 9])
    assert.deepEqual(read(bytes.subarray(0, length), 3), { messages: [], refused: undefined, incomplete: true });
});

test("a message longer than 4 MiB is rejected by its prefix, one of exactly 4 MiB is read", () => {
  const most = read(frame(Buffer.alloc(4 * MIB, "a")), 100_000);
  assert.deepEqual([most.messages[0]?.length, most.refused], [4 * MIB, undefined]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(4 * MIB + 1, 1);
  assert.equal(read(prefix, 5).refused, "8 the service has sent a message of 4194305 bytes; the limit is 4194304");
});

test("a compressed message is rejected, after those that are not", () => {
  const compressed = frame(Buffer.from("zipped"));
  compressed[0] = 1;
  const { messages, refused } = read(Buffer.concat([frame(Buffer.from("plain")), compressed]), 1000);
  assert.deepEqual(messages, ["plain"]);
  assert.equal(refused, "13 the service has compressed a message with an unnamed encoding, which is not accepted");
});
