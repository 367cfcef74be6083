/**
 * node idle.ts <port> <connections> http|h2
 * Opens the connections, 64 at a time, does one request on each and keeps them. Prints one JSON line {"open", "failed"} when
 * all have had their answer, and another for every line on standard input; ends with standard input.
 */
import { connect } from "node:net";
import { createInterface } from "node:readline";

const [port = 0, count = 0] = process.argv.slice(2).map(Number);
const http2 = process.argv[4] === "h2";
const AT_ONCE = 64;

const TEXT = Buffer.from("GET / HTTP/1.1\r\nHost: bench.test\r\n\r\n");
/** Types and flags of frames (RFC 9113 6). */
const SETTINGS = 4;
const ACK = 1;
const DATA = 0;
const END_STREAM = 1;
/** GET / of http://bench.test/ in fields of the static table, all literal values without Huffman's code. */
const FIELDS = Buffer.concat([Buffer.from([0x82, 0x86, 0x84, 0x41, 10]), Buffer.from("bench.test")]);
/** Preface, SETTINGS, and HEADERS with END_HEADERS and END_STREAM on stream 1. */
const FRAMES = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  frame(SETTINGS, 0, 0),
  frame(1, 5, 1, FIELDS),
]);

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Reads frames, acknowledges SETTINGS, and calls `done` at the end of the stream. */
function frameReader(send: (bytes: Buffer) => void, done: () => void): (bytes: Buffer) => void {
  let held = Buffer.alloc(0);
  return (bytes) => {
    held = Buffer.concat([held, bytes]);
    while (held.length >= 9 && held.length >= 9 + held.readUIntBE(0, 3)) {
      const [type, flags] = [held.readUInt8(3), held.readUInt8(4)];
      if (type === SETTINGS && (flags & ACK) === 0) send(frame(SETTINGS, ACK, 0));
      if (type === DATA && (flags & END_STREAM) !== 0) done();
      held = held.subarray(9 + held.readUIntBE(0, 3));
    }
  };
}

let open = 0;
let failed = 0;

function openOne(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      open++;
      socket.write(http2 ? FRAMES : TEXT);
    });
    socket.on("data", http2 ? frameReader((bytes) => socket.write(bytes), resolve) : () => resolve());
    socket.on("error", () => failed++);
    socket.on("close", () => {
      open--;
      resolve();
    });
  });
}

async function openSeveral(share: number): Promise<void> {
  for (let index = 0; index < share; index++) await openOne();
}

function report(): void {
  process.stdout.write(`${JSON.stringify({ open, failed })}\n`);
}

await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => openSeveral(Math.floor((count + lane) / AT_ONCE))));
report();
const lines = createInterface({ input: process.stdin });
lines.on("line", report);
lines.on("close", () => process.exit());
