/**
 * node body.ts sink <port>                    answers 204 to each request once its whole body (Content-Length) has come
 * node body.ts down <port> <bytes> [pause ms] GET /big, reads everything
 * node body.ts up <port> <bytes> [pause ms]   POST with that many bytes
 * The clients print one JSON line {"status", "bytes", "seconds"}. After the first bytes the reading side (down) or the sink
 * (header `pause`, milliseconds) stops reading for a while: a proxy that does not pass the backpressure on grows meanwhile.
 */
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const [role, ...rest] = process.argv.slice(2);
const [port = 0, bytes = 0, pauseMs = 0] = rest.map(Number);
const CHUNK = Buffer.alloc(1 << 20);
const READ_BUFFER = Buffer.alloc(1 << 20);

type Reader = (text: () => string, length: number) => void;

/** Reads into one buffer; the text of a chunk is made only when the reader asks for it. */
function onRead(reader: Reader): { buffer: Buffer; callback: (length: number) => boolean } {
  const callback = (length: number): boolean => {
    reader(() => READ_BUFFER.toString("latin1", 0, length), length);
    return true;
  };
  return { buffer: READ_BUFFER, callback };
}

/** The text of a head, and its length in bytes including the empty line; undefined while it is incomplete. */
function splitHead(text: string): { head: string; length: number } | undefined {
  const end = text.indexOf("\r\n\r\n");
  return end < 0 ? undefined : { head: text.slice(0, end), length: end + 4 };
}

function pauseFor(socket: Socket, milliseconds: number): void {
  if (milliseconds === 0) return;
  socket.pause();
  void delay(milliseconds).then(() => socket.resume());
}

/** Down: heads arrive in one piece from every proxy here, so the first chunk holds all of it. */
function client(): void {
  const started = performance.now();
  let status = 0;
  let bodyBytes = 0;
  const socket = connect({
    port,
    host: "127.0.0.1",
    onread: onRead((text, length) => {
      bodyBytes += length;
      if (status === 0) {
        const first = text();
        status = Number(first.slice(9, 12));
        bodyBytes -= splitHead(first)?.length ?? 0;
        if (role === "down") pauseFor(socket, pauseMs);
      }
      if (role === "down" && bodyBytes < bytes) return;
      const seconds = (performance.now() - started) / 1000;
      process.stdout.write(`${JSON.stringify({ status, bytes: role === "up" ? bytes : bodyBytes, seconds })}\n`);
      socket.destroy();
    }),
  });
  if (role === "down") socket.write("GET /big HTTP/1.1\r\nHost: bench.test\r\n\r\n");
  else upload(socket);
}

function upload(socket: Socket): void {
  socket.write(`POST /sink HTTP/1.1\r\nHost: bench.test\r\nPause: ${pauseMs}\r\nContent-Length: ${bytes}\r\n\r\n`);
  let left = bytes;
  const more = (): void => {
    while (left > 0) {
      const size = Math.min(left, CHUNK.length);
      left -= size;
      if (!socket.write(CHUNK.subarray(0, size))) break;
    }
  };
  socket.on("drain", more);
  more();
}

function sink(): void {
  createServer((socket) => {
    let head = "";
    let left = -1;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      let received = chunk.length;
      if (left < 0) {
        head += chunk.toString("latin1");
        const split = splitHead(head);
        if (split === undefined) return;
        left = Number(/\r\ncontent-length: *(\d+)/i.exec(split.head)?.[1] ?? 0);
        received = head.length - split.length;
        pauseFor(socket, Number(/\r\npause: *(\d+)/i.exec(split.head)?.[1] ?? 0));
      }
      left -= received;
      if (left > 0) return;
      socket.write("HTTP/1.1 204 No Content\r\n\r\n");
      head = "";
      left = -1;
    });
  }).listen(port, "127.0.0.1");
}

if (role === "sink") sink();
else client();
