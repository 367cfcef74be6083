/** Clients of the gateway that send requests at random, some of them broken, and give up at any time. */
import type { Socket } from "node:net";
import { GOAWAY, PING, PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE } from "../../../src/http/h2/frames.ts";
import { uint32 } from "../../helpers/h2-client.ts";
import type { Dice } from "../dice.ts";
import { body, chunked, Http2End, some } from "./ends.ts";

const FIELDS: readonly (readonly [name: string, value: string])[] = [
  ["accept-encoding", "gzip, br"],
  ["expect", "100-continue"],
  ["te", "trailers"],
  ["content-type", "application/grpc"],
  ["content-type", "application/grpc-web-text"],
  ["content-type", "application/grpc-web+proto"],
  ["grpc-timeout", "10m"],
  ["grpc-timeout", "1n"],
  ["range", "bytes=0-10"],
  ["if-none-match", 'W/"x"'],
  ["cookie", "session=garbage"],
  ["priority", "u=1, i"],
  ["x-forwarded-for", "1.2.3.4"],
];

/** Pipelines a few requests. */
export function sendHttp1(socket: Socket, paths: readonly string[], dice: Dice): void {
  for (let n = 1 + dice.below(5); n > 0; n--) {
    const method = dice.of(["GET", "GET", "POST", "POST", "POST", "HEAD", "OPTIONS"]);
    let head = `${method} ${dice.of(paths)} HTTP/1.${dice.chance(0.9) ? 1 : 0}\r\nHost: a\r\n`;
    for (const [name, value] of some(dice, FIELDS, 0.08)) head += `${name}: ${value}\r\n`;
    if (dice.chance(0.1)) head += "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
    else if (dice.chance(0.05)) head += "Connection: close\r\n";
    if (method !== "POST") socket.write(`${head}\r\n`);
    else if (dice.chance(0.5))
      socket.write(Buffer.concat([Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`), chunked(dice)]));
    else {
      const bytes = body(dice);
      socket.write(`${head}Content-Length: ${bytes.length}\r\n\r\n`);
      socket.write(dice.chance(0.9) ? bytes : bytes.subarray(1));
    }
    if (dice.chance(0.05)) socket.pause();
  }
  socket.resume();
}

/** Opens streams and does on them whatever HTTP/2 has frames for. */
export function sendHttp2(socket: Socket, paths: readonly string[], dice: Dice): void {
  const end = new Http2End(socket, "client", dice, () => {});
  const open: number[] = [];
  let next = 1;
  for (let n = 5 + dice.below(40); n > 0; n--) {
    const stream = open.length > 0 ? dice.of(open) : 0;
    const act = dice.below(100);
    if (act < 50 || open.length === 0) {
      if (!sendRequest(end, next, paths, dice)) open.push(next);
      next += dice.of([2, 2, 2, 4]);
    } else if (act < 70) end.data(stream, body(dice), dice.chance(0.3));
    else if (act < 78) end.send(RST_STREAM, 0, stream, uint32(dice.of([0, 5, 8])));
    else if (act < 84)
      end.headers(stream, ["x-trailer", "1", ...(dice.chance(0.1) ? [":path", "/"] : [])], dice.chance(0.9));
    else if (act < 88) end.send(WINDOW_UPDATE, 0, dice.of([0, stream]), uint32(dice.of([1, 1000, 100_000])));
    else if (act < 90) end.send(PING, 0, 0, Buffer.alloc(8));
    else if (act < 93)
      end.send(PRIORITY_UPDATE, 0, 0, Buffer.concat([uint32(dice.of([1, 3, 101, stream])), Buffer.from("u=1, i")]));
    else if (act < 96)
      end.send(SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), uint32(dice.of([0, 1, 65_535, 100_000]))]));
    else if (act < 97) end.send(GOAWAY, 0, 0, Buffer.alloc(8));
    else if (act < 98) end.nonsense(open);
  }
}

/** Returns whether the request ends with its head. */
function sendRequest(end: Http2End, stream: number, paths: readonly string[], dice: Dice): boolean {
  const method = dice.of(["GET", "GET", "POST", "POST", "POST", "HEAD", "CONNECT", "OTHER"]);
  const fields = [":method", method];
  if (method !== "CONNECT" || dice.chance(0.8)) fields.push(":scheme", "http", ":path", dice.of(paths));
  fields.push(":authority", "a.example");
  if (method === "CONNECT" && dice.chance(0.9)) fields.push(":protocol", "websocket");
  for (const [name, value] of some(dice, FIELDS, 0.08)) fields.push(name, value);
  const ends = method === "GET" || method === "HEAD" || dice.chance(0.1);
  const bytes = body(dice);
  const isSized = !ends && method === "POST" && dice.chance(0.3);
  if (isSized) fields.push("content-length", String(bytes.length));
  end.headers(stream, fields, ends);
  if (isSized) end.data(stream, bytes, dice.chance(0.9));
  return ends;
}
