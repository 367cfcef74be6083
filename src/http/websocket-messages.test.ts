import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocketReader } from "./websocket-messages.ts";

interface Seen {
  readonly opcode: string | undefined;
  readonly bytes: number;
  readonly text: string;
  readonly closeCode?: number;
  readonly compressed?: true;
  readonly truncated?: true;
}

const MASK = Buffer.of(1, 2, 3, 4);

/** A frame whose first byte is `first`; masked unless `mask` is false. */
function frame(first: number, payload: string | Buffer = "", mask = true): Buffer {
  const content = Buffer.from(payload);
  const length =
    content.length < 126
      ? Buffer.of(content.length)
      : Buffer.concat([Buffer.of(126), Buffer.of(content.length >> 8, content.length & 255)]);
  if (!mask) return Buffer.concat([Buffer.of(first), length, content]);
  length[0] = (length[0] ?? 0) | 0x80;
  return Buffer.concat([Buffer.of(first), length, MASK, content.map((byte, index) => byte ^ (MASK[index % 4] ?? 0))]);
}

/** Reads `bytes` in pieces of `size`; the last entry is the reason for which it has stopped. */
function read(reader: WebSocketReader, bytes: Buffer, size = bytes.length): (Seen | string)[] {
  const seen: (Seen | string)[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const reason = reader.read(
      bytes.subarray(at, at + size),
      ({ opcode, bytes: length, content, compressed, closeCode }) =>
        seen.push({
          opcode,
          bytes: length,
          text: content.bytes.toString("latin1"),
          ...(closeCode !== undefined && { closeCode }),
          ...(compressed && { compressed }),
          ...(content.truncated && { truncated: true }),
        }),
    );
    if (reason !== undefined) return [...seen, reason];
  }
  return seen;
}

test("messages of all kinds, however their bytes are split", () => {
  const bytes = Buffer.concat([
    frame(0x81, "hello"),
    frame(0x82, ""),
    frame(0x01, "in "),
    frame(0x89, "still there?"),
    frame(0x00, "three "),
    frame(0x80, "fragments"),
    frame(0xc1, "deflated"),
    frame(0x82, "x".repeat(300)),
    frame(0x8a),
    frame(0x88, Buffer.concat([Buffer.of(3, 233), Buffer.from("gone")])),
    frame(0x88),
  ]);
  const expected = [
    { opcode: "text", bytes: 5, text: "hello" },
    { opcode: "binary", bytes: 0, text: "" },
    { opcode: "ping", bytes: 12, text: "still there?" },
    { opcode: "text", bytes: 18, text: "in three fragments" },
    { opcode: "text", bytes: 8, text: "deflated", compressed: true },
    { opcode: "binary", bytes: 300, text: "x".repeat(20), truncated: true },
    { opcode: "pong", bytes: 0, text: "" },
    { opcode: "close", bytes: 6, text: "gone", closeCode: 1001 },
    { opcode: "close", bytes: 0, text: "" },
  ];
  for (const size of [1, 2, 3, 7, 64, bytes.length])
    assert.deepEqual(read(new WebSocketReader(true, 20), bytes, size), expected, `pieces of ${size}`);
});

test("a frame of 2^40 bytes is counted, and takes no memory", () => {
  const reader = new WebSocketReader(false, 4);
  assert.deepEqual(read(reader, Buffer.of(0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0)), []);
  const piece = Buffer.alloc(2 ** 24, "a");
  for (let left = 2 ** 16 - 1; left > 0; left--) assert.deepEqual(read(reader, piece), []);
  assert.deepEqual(read(reader, piece), [{ opcode: "binary", bytes: 2 ** 40, text: "aaaa", truncated: true }]);
});

test("bytes that are not valid frames end it, behind the messages before them", () => {
  const broken: readonly [Buffer, string][] = [
    [frame(0x81, "x", false), "a frame of the client is not masked"],
    [frame(0x83), "a frame has the reserved opcode 3"],
    [frame(0xa1), "a frame has reserved bits"],
    [frame(0x80), "a frame continues a message that has not begun"],
    [Buffer.concat([frame(0x01), frame(0xc0)]), "a frame that continues a message has reserved bits"],
    [Buffer.concat([frame(0x01), frame(0x81)]), "a message begins within another"],
    [frame(0x09), "a control frame is in fragments, compressed or too long"],
    [frame(0xc9), "a control frame is in fragments, compressed or too long"],
    [frame(0x89, "x".repeat(126)), "a control frame is in fragments, compressed or too long"],
    [Buffer.concat([Buffer.of(0x82, 255), Buffer.alloc(12, 255)]), "a frame has an impossible length"],
  ];
  for (const [bytes, reason] of broken) {
    const all = Buffer.concat([frame(0x81, "before"), bytes]);
    assert.deepEqual(read(new WebSocketReader(true, 10), all), [{ opcode: "text", bytes: 6, text: "before" }, reason]);
  }
  assert.deepEqual(read(new WebSocketReader(false, 10), frame(0x81, "x")), ["a frame of the server is masked"]);
});
