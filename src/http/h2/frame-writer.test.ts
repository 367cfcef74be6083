import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { connect } from "../../net/connect.ts";
import { admitted } from "../../net/testing/egress.ts";
import type { Transport } from "../../net/transport.ts";
import { FrameWriter, SENT_FRAME_SIZE } from "./frame-writer.ts";
import { CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_HEADER, HEADERS, readUint31 } from "./frames.ts";
import { FieldSection, HpackDecoder } from "./hpack/decoder.ts";
import { OUTPUT_SIZE } from "./output.ts";

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

/** The frames that `write` makes, as they arrive at the other end of a connection. */
async function framesOf(write: (writer: FrameWriter) => void): Promise<Frame[]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const opened = Promise.withResolvers<Transport>();
  connect(admitted({ host: "127.0.0.1", port: (server.address() as AddressInfo).port }), 0, {
    onConnect(transport) {
      opened.resolve(transport);
      return { onData() {}, onEnd() {}, onDrain() {}, onClose() {}, onFault: opened.reject };
    },
    onClose: opened.reject,
  });
  const [socket] = (await once(server, "connection")) as [Socket];
  const transport = await opened.promise;
  const writer = new FrameWriter(transport);
  write(writer);
  writer.flush();
  transport.end();
  const bytes = Buffer.concat((await socket.toArray()) as Buffer[]);
  socket.destroy();
  server.close();
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + FRAME_HEADER + bytes.readUIntBE(at, 3);
    const payload = bytes.subarray(at + FRAME_HEADER, end);
    frames.push({ type: bytes[at + 3] ?? 0, flags: bytes[at + 4] ?? 0, id: readUint31(bytes, at + 5), payload });
    at = end;
  }
  return frames;
}

const BODY = Buffer.alloc(SENT_FRAME_SIZE, "x");

test("the end of a stream is a flag of its last frame while that is the last one here, else a frame", async () => {
  const frames = await framesOf((writer) => {
    writer.headers(1, [], ["x-a", "1"], false);
    writer.endStream(1);
    writer.data(3, BODY, 0, 5);
    writer.data(5, BODY, 0, 5);
    // Not the last one.
    writer.endStream(3);
    writer.data(7, BODY, 0, 5);
    // It has left.
    writer.flush();
    writer.endStream(7);
    writer.data(9, BODY, 0, 5);
    writer.windowUpdate(0, 1);
    writer.endStream(9);
  });
  assert.deepEqual(
    frames
      .map(({ type, flags, id, payload }) => [type, flags & END_STREAM, id, payload.length])
      .filter(([type]) => type !== 8),
    [
      [HEADERS, END_STREAM, 1, 7],
      [DATA, 0, 3, 5],
      [DATA, 0, 5, 5],
      [DATA, END_STREAM, 3, 0],
      [DATA, 0, 7, 5],
      [DATA, END_STREAM, 7, 0],
      [DATA, 0, 9, 5],
      [DATA, END_STREAM, 9, 0],
    ],
  );
});

test("a field block of several frames that ends its stream has END_STREAM on its HEADERS", async () => {
  const large = ["x-a", "\x01".repeat(40_000)];
  const frames = await framesOf((writer) => {
    // Not enough room for the block is left behind it.
    writer.data(3, BODY, 0, 16_000);
    writer.data(3, BODY, 0, 16_000);
    writer.headers(1, [":status", "200"], large, false);
    writer.endStream(1);
    writer.headers(5, [":status", "200"], large, false);
    writer.data(3, BODY, 0, 5);
    writer.endStream(5);
  });
  const kinds = frames.map(({ type, flags, id }) => [type, flags, id]);
  const block = (id: number, flags: number) => [
    [HEADERS, flags, id],
    [CONTINUATION, 0, id],
    [CONTINUATION, END_HEADERS, id],
  ];
  assert.deepEqual(kinds, [
    [DATA, 0, 3],
    [DATA, 0, 3],
    ...block(1, END_STREAM),
    ...block(5, 0),
    [DATA, 0, 3],
    [DATA, END_STREAM, 5],
  ]);
});

test("however full the buffer is, a field block of several frames stays in one and can end its stream", async () => {
  const frames = await framesOf((writer) => {
    // Around the length that leaves room for the block, but not for the heads of its further frames.
    for (let id = 1; id < 200; id += 2) {
      writer.data(201, BODY, 0, 9400 + (id >> 1));
      writer.headers(id, [], ["x-a", "v".repeat(OUTPUT_SIZE - 9500)], false);
      writer.endStream(id);
      writer.flush();
    }
  });
  const ends = frames.filter(({ flags }) => (flags & END_STREAM) !== 0);
  assert.deepEqual([ends.length, ends.every(({ type }) => type === HEADERS)], [100, true]);
});

test("frames that fill the buffer to its last byte, and those that no longer fit, arrive in order", async () => {
  const frames = await framesOf((writer) => {
    // 64 KiB are 3 frames of the usual size with their heads, and 16,348 bytes and a head.
    for (const last of [16_347, 16_348, 16_349]) {
      for (let i = 0; i < 3; i++) writer.data(1, BODY, 0, BODY.length);
      writer.data(1, BODY, 0, last);
      writer.ping(7);
      writer.flush();
    }
  });
  const lengths = [16_347, 16_348, 16_349].flatMap((last) => [...Array<number>(3).fill(SENT_FRAME_SIZE), last, 8]);
  assert.deepEqual(
    frames.map(({ payload }) => payload.length),
    lengths,
  );
  assert.ok(frames.every(({ type, payload }) => type !== DATA || payload.every((byte) => byte === 0x78)));
});

test("field blocks of every size arrive whole, in frames that every peer takes", async () => {
  const sizes = [100, SENT_FRAME_SIZE - 20, SENT_FRAME_SIZE, 3 * SENT_FRAME_SIZE, 70_000, 200_000];
  const frames = await framesOf((writer) => {
    for (const [i, size] of sizes.entries())
      writer.headers(2 * i + 1, [":status", "200"], ["x-a", "v".repeat(size)], true);
  });
  const decoder = new HpackDecoder({ tableSize: 4096, maxListSize: 1_000_000, maxFields: 10 });
  for (const [i, size] of sizes.entries()) {
    const own = frames.filter(({ id }) => id === 2 * i + 1);
    assert.ok(own.every(({ payload }) => payload.length <= SENT_FRAME_SIZE));
    assert.deepEqual(
      own.map(({ type }) => type),
      own.map((_, at) => (at === 0 ? HEADERS : CONTINUATION)),
    );
    // END_STREAM is on the first frame, END_HEADERS on the last.
    assert.deepEqual(
      own.map(({ flags }) => flags & END_STREAM),
      own.map((_, at) => (at === 0 ? END_STREAM : 0)),
    );
    assert.deepEqual(
      own.map(({ flags }) => flags & END_HEADERS),
      own.map((_, at) => (at === own.length - 1 ? END_HEADERS : 0)),
    );
    const block = Buffer.concat(own.map(({ payload }) => payload));
    const section = new FieldSection();
    assert.equal(decoder.decode(block, 0, block.length, section), undefined);
    assert.deepEqual([...section.fields], [":status", "200", "x-a", "v".repeat(size)]);
  }
});
