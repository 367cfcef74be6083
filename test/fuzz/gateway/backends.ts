/** Servers behind the gateway that respond at random: well, badly, in part, late or not at all. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { END_HEADERS, GOAWAY, HEADERS, RST_STREAM } from "../../../src/http/h2/frames.ts";
import { literals, uint32 } from "../../helpers/h2-client.ts";
import type { Dice } from "../dice.ts";
import { body, chunked, Http2End, some } from "./ends.ts";

const FIELDS = [
  "Content-Type: text/plain",
  "Content-Type: application/grpc",
  'ETag: "x"',
  "Content-Encoding: gzip",
  "Cache-Control: no-transform",
  "Connection: close",
  "Upgrade: websocket",
  "Trailer: x-trailer",
  "grpc-status: 0",
  "Set-Cookie: a=b",
];
const STATUSES = ["200", "200", "200", "200", "204", "205", "304", "206", "404", "500", "503", "101", "99"];
const INTERIM = ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"];
const GARBAGE = [
  "garbage\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
  "HTTP/2 200\r\n\r\n",
];

/** Listens on a free port for as long as the process runs; `dice` gives those of the present game. */
export async function startBackend(version: 1 | 2, dice: () => Dice): Promise<number> {
  const serve = version === 1 ? serveHttp1 : serveHttp2;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    serve(socket, dice());
  });
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Responds once for every head that it sees, or breaks off. */
function serveHttp1(socket: Socket, dice: Dice): void {
  let received = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    received += text;
    if (!received.includes("\r\n\r\n") || !socket.writable) return;
    received = "";
    const end = dice.below(20);
    if (end === 0) socket.destroy();
    else if (end === 1) socket.resetAndDestroy();
    else socket.write(http1Response(dice));
    if (end < 6) socket.end();
  });
}

function http1Response(dice: Dice): Buffer {
  const start = dice.repeat(1, () => dice.of(INTERIM));
  const fields = some(dice, FIELDS, 0.15)
    .map((line) => `${line}\r\n`)
    .join("");
  const head = `${start}HTTP/1.1 ${dice.of(STATUSES)} X\r\n${fields}`;
  switch (dice.below(10)) {
    case 0:
      return Buffer.alloc(0);
    case 1:
      return Buffer.from(dice.of(GARBAGE));
    case 2:
      return Buffer.concat([Buffer.from(`${head}\r\n`), body(dice)]);
    case 3:
    case 4:
    case 5:
      return Buffer.concat([Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`), chunked(dice)]);
    default: {
      const bytes = body(dice);
      const length = bytes.length + (dice.chance(0.1) ? 1 : 0);
      return Buffer.concat([Buffer.from(`${head}Content-Length: ${length}\r\n\r\n`), bytes]);
    }
  }
}

function serveHttp2(socket: Socket, dice: Dice): void {
  const end = new Http2End(socket, "server", dice, (id) => {
    const act = dice.below(50);
    if (act === 0) socket.destroy();
    else if (act === 1) end.nonsense([id]);
    else respond(end, id, dice);
  });
}

function respond(end: Http2End, id: number, dice: Dice): void {
  switch (dice.below(20)) {
    case 0:
      return;
    case 1:
      end.send(RST_STREAM, 0, id, uint32(dice.of([0, 1, 2, 7, 8, 13])));
      return;
    case 2:
      end.send(GOAWAY, 0, 0, Buffer.concat([uint32(dice.of([0, id, 2 ** 31 - 1])), uint32(dice.of([0, 0, 0, 1, 11]))]));
      return;
    default:
  }
  if (dice.chance(0.2)) end.headers(id, [":status", dice.of(["100", "103", "101"])], false);
  const bytes = body(dice);
  const fields = [":status", dice.of(["200", "200", "200", "204", "205", "304", "404", "503"])];
  if (dice.chance(0.4)) fields.push("content-type", dice.of(["application/grpc", "text/plain"]));
  if (dice.chance(0.3)) fields.push("content-length", String(bytes.length + (dice.chance(0.1) ? 1 : 0)));
  if (dice.chance(0.05)) fields.push(dice.of([":bad", "connection", "Upper", "transfer-encoding"]), "x");
  if (dice.chance(0.1)) {
    end.headers(id, fields, true);
    return;
  }
  end.headers(id, fields, false);
  const trailers = dice.chance(0.4);
  end.data(id, bytes, !trailers && dice.chance(0.9));
  if (trailers)
    end.send(HEADERS, END_HEADERS | dice.of([0, 1, 1, 1]), id, literals(["grpc-status", "0", "x-trailer", "1"]));
}
