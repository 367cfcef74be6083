import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader, type FrameSink } from "./frame-reader.ts";
import { FRAME_SIZE_ERROR, HTTP_1_1_REQUIRED, PROTOCOL_ERROR, writeFrameHeader } from "./frames.ts";

/** Records what a reader reports. */
class Notes implements FrameSink {
  readonly events: string[] = [];
  reader: FrameReader | undefined;
  refused: number | undefined;

  mayRead(id: number): boolean {
    return id !== this.refused;
  }

  onDataFrame(id: number, length: number): void {
    this.events.push(`data ${id} ${length}`);
  }

  /** Slices of one frame are joined: how it was cut is up to the socket. */
  onDataBytes(buffer: Buffer, from: number, to: number): void {
    const text = buffer.toString("latin1", from, to);
    const last = this.events.at(-1);
    if (last?.startsWith("bytes ") === true) this.events[this.events.length - 1] = last + text;
    else this.events.push(`bytes ${text}`);
  }

  onDataEnd(endStream: boolean, padding: number): void {
    this.events.push(`data end${endStream ? ", stream too" : ""}, ${padding} padding`);
  }

  onFieldBlock(id: number, buffer: Buffer, from: number, to: number, endStream: boolean, dependency: number): void {
    this.events.push(`block ${id} ${buffer.toString("latin1", from, to)} ${endStream} ${dependency}`);
  }

  onPriority(id: number, dependency: number): void {
    this.events.push(`priority ${id} ${dependency}`);
  }

  onResetFrame(id: number, code: number): void {
    this.events.push(`reset ${id} ${code}`);
  }

  onSettingsFrame(ack: boolean, _buffer: Buffer, from: number, to: number): void {
    this.events.push(`settings ${ack} ${to - from}`);
  }

  onPingFrame(ack: boolean): void {
    this.events.push(`ping ${ack}`);
  }

  onGoAwayFrame(lastStream: number, buffer: Buffer, from: number): void {
    this.events.push(`goaway ${lastStream} ${buffer.readUInt32BE(from)}`);
  }

  onWindowUpdate(id: number, increment: number): void {
    this.events.push(`window ${id} ${increment}`);
  }

  onPriorityUpdate(id: number, buffer: Buffer, from: number, to: number): void {
    this.events.push(`priority update ${id} ${buffer.toString("latin1", from, to)}`);
  }

  onIdleFrame(): void {
    this.events.push("idle");
  }

  onStreamFrameError(id: number, code: number): void {
    this.events.push(`stream error ${id} ${code}`);
  }

  onFrameError(code: number): void {
    this.events.push(`error ${code}`);
    this.reader?.stop();
  }
}

function frame(type: number, flags: number, id: number, payload: string): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.write(payload, writeFrameHeader(bytes, 0, payload.length, type, flags, id), "latin1");
  return bytes;
}

const SETTINGS = frame(4, 0, 0, "");

function reading(maxFrameSize = 16_384, maxBlock = 1000) {
  const notes = new Notes();
  const reader = new FrameReader(notes, maxFrameSize, maxBlock);
  notes.reader = reader;
  return { notes, reader };
}

/** Reads `bytes` as a socket that delivers `size` bytes at a time. */
function readPieces(bytes: Buffer, size: number): string[] {
  const { notes, reader } = reading();
  let held = Buffer.alloc(0);
  for (let at = 0; at < bytes.length; at += size) {
    held = Buffer.concat([held, bytes.subarray(at, at + size)]);
    held = held.subarray(reader.read(held, 0, held.length));
  }
  return notes.events;
}

const ALL = Buffer.concat([
  frame(4, 0, 0, "abcdef"),
  frame(4, 1, 0, ""),
  frame(1, 0x4, 1, "head"),
  frame(1, 0x2d, 3, "\x02\x80\x00\x00\x05\x10head\x00\x00"),
  frame(1, 0x1, 5, "begin,"),
  frame(9, 0, 5, "middle,"),
  frame(9, 0x4, 5, "end"),
  frame(0, 0, 1, "some text"),
  frame(0, 0x9, 1, "\x03text\x00\x00\x00"),
  frame(0, 0, 1, ""),
  frame(2, 0, 7, "\x00\x00\x00\x01\x10"),
  frame(3, 0, 7, "\x00\x00\x00\x08"),
  frame(6, 0, 0, "12345678"),
  frame(7, 0, 0, "\x00\x00\x00\x05\x00\x00\x00\x02why"),
  frame(8, 0, 1, "\x80\x00\x01\x00"),
  frame(0x10, 0, 0, "\x00\x00\x00\x01u=1"),
  frame(0x77, 0xff, 9, "unknown"),
  frame(2, 0, 7, "\x00\x00\x00\x01"),
]);

test("every frame is read, however its bytes are cut", () => {
  const whole = readPieces(ALL, ALL.length);
  assert.deepEqual(whole, [
    "settings false 6",
    "settings true 0",
    "block 1 head false -1",
    "block 3 head true 5",
    "block 5 begin,middle,end true -1",
    "data 1 9",
    "bytes some text",
    "data end, 0 padding",
    "data 1 8",
    "bytes text",
    "data end, stream too, 4 padding",
    "idle",
    "data 1 0",
    "data end, 0 padding",
    "priority 7 1",
    "reset 7 8",
    "ping false",
    "goaway 5 2",
    "window 1 256",
    "priority update 1 u=1",
    "idle",
    `stream error 7 ${FRAME_SIZE_ERROR}`,
  ]);
  for (const size of [1, 2, 3, 7, 10, 64]) assert.deepEqual(readPieces(ALL, size), whole, `${size} bytes at a time`);
});

test("reading stops before HEADERS when no stream may begin, and continues there", () => {
  const { notes, reader } = reading();
  const bytes = Buffer.concat([SETTINGS, frame(1, 0x4, 1, "a"), frame(1, 0x4, 3, "b"), frame(6, 0, 0, "12345678")]);
  notes.refused = 3;
  const at = reader.read(bytes, 0, bytes.length);
  assert.deepEqual(notes.events, ["settings false 0", "block 1 a false -1"]);
  notes.refused = undefined;
  assert.equal(reader.read(bytes, at, bytes.length), bytes.length);
  assert.deepEqual(notes.events.slice(2), ["block 3 b false -1", "ping false"]);
});

const ERRORS: readonly (readonly [string, Buffer, number])[] = [
  ["a frame beyond the announced size", frame(0, 0, 1, "x".repeat(16_385)), FRAME_SIZE_ERROR],
  [
    "a field block beyond the limit",
    Buffer.concat([frame(1, 0, 1, "x".repeat(900)), frame(9, 0, 1, "y".repeat(200))]),
    11,
  ],
  ["DATA on stream 0", frame(0, 0, 0, "x"), PROTOCOL_ERROR],
  ["padded DATA without a length", frame(0, 8, 1, ""), FRAME_SIZE_ERROR],
  ["padded HEADERS without a length", frame(1, 0xc, 1, ""), FRAME_SIZE_ERROR],
  ["padding beyond HEADERS", frame(1, 0xc, 1, "\x05abc"), PROTOCOL_ERROR],
  ["HEADERS without room for a priority", frame(1, 0x24, 1, "abc"), FRAME_SIZE_ERROR],
  ["SETTINGS on a stream", frame(4, 0, 1, ""), PROTOCOL_ERROR],
  ["SETTINGS of 5 bytes", frame(4, 0, 0, "12345"), FRAME_SIZE_ERROR],
  ["an acknowledgement with settings", frame(4, 1, 0, "123456"), FRAME_SIZE_ERROR],
  ["PING on a stream", frame(6, 0, 1, "12345678"), PROTOCOL_ERROR],
  ["GOAWAY of 7 bytes", frame(7, 0, 0, "1234567"), FRAME_SIZE_ERROR],
  ["RST_STREAM of 3 bytes", frame(3, 0, 1, "123"), FRAME_SIZE_ERROR],
  ["WINDOW_UPDATE of 5 bytes", frame(8, 0, 1, "12345"), FRAME_SIZE_ERROR],
  ["CONTINUATION of another stream", Buffer.concat([frame(1, 0, 1, "a"), frame(9, 4, 3, "b")]), PROTOCOL_ERROR],
  ["PRIORITY_UPDATE on a stream", frame(0x10, 0, 1, "\x00\x00\x00\x01"), PROTOCOL_ERROR],
];

for (const [name, bytes, code] of ERRORS)
  test(`${name} is an error, and nothing is read behind it`, () => {
    const { notes, reader } = reading();
    reader.read(Buffer.concat([SETTINGS, bytes, frame(6, 0, 0, "12345678")]), 0, 9 + bytes.length + 17);
    assert.deepEqual(notes.events.at(-1), `error ${code}`);
  });

test("a response in HTTP/1.1 is recognized", () => {
  const { notes, reader } = reading();
  const answer = Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n");
  reader.read(answer, 0, answer.length);
  assert.deepEqual(notes.events, [`error ${HTTP_1_1_REQUIRED}`]);
});

test("the first frame has to be SETTINGS, not an acknowledgement", () => {
  for (const first of [frame(6, 0, 0, "12345678"), frame(4, 1, 0, "")]) {
    const { notes, reader } = reading();
    reader.read(first, 0, first.length);
    assert.deepEqual(notes.events, [`error ${PROTOCOL_ERROR}`]);
  }
});
