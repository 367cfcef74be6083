import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { LocalGateway } from "../../helpers/local-gateway.ts";

/** A backend that speaks only HTTP/1.1 and echoes requests. Like other servers, it parses the preface of HTTP/2 and responds 400. */
async function http1Backend(): Promise<{ port: number; connections: number } & AsyncDisposable> {
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => {
      body += bytes;
    });
    request.on("end", () => response.end(`${request.httpVersion} ${request.method} ${body}`));
  });
  const backend = {
    port: 0,
    connections: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  server.on("connection", () => backend.connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  backend.port = (server.address() as AddressInfo).port;
  return backend;
}

async function ask(session: ClientHttp2Session, method: string, body = ""): Promise<string> {
  const stream = session.request({ ":method": method, ":path": "/" }, { endStream: body === "" });
  if (body !== "") stream.end(body);
  const [{ ":status": status }] = (await once(stream, "response")) as [Record<string, unknown>];
  let text = "";
  for await (const piece of stream) text += String(piece);
  return `${status} ${text}`;
}

const through = (port: number, policies: object = {}) =>
  LocalGateway.start({
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${port}`, policies }] }] }] }],
  });

test("requests of plaintext HTTP/2 clients reach a backend that responds in HTTP/1.1, also concurrent ones", async () => {
  await using backend = await http1Backend();
  await using gateway = await through(backend.port);
  const session = connect(`http://127.0.0.1:${gateway.port()}`);
  const first = await Promise.all([
    ...Array.from({ length: 10 }, () => ask(session, "GET")),
    ...Array.from({ length: 10 }, (_, i) => ask(session, "POST", `body ${i}`)),
  ]);
  assert.deepEqual(first, [
    ...Array<string>(10).fill("200 1.1 GET "),
    ...Array.from({ length: 10 }, (_, i) => `200 1.1 POST body ${i}`),
  ]);
  const before = backend.connections;
  assert.equal(await ask(session, "GET"), "200 1.1 GET ");
  assert.equal(backend.connections, before, "an idle connection of HTTP/1.1 is used, HTTP/2 is not tried again");
  session.close();
});

test("if the configuration requires HTTP/2, a backend that responds in HTTP/1.1 is an error, and the log says so", async () => {
  await using backend = await http1Backend();
  await using gateway = await through(backend.port, { http: { version: "HTTP/2.0" } });
  const session = connect(`http://127.0.0.1:${gateway.port()}`);
  assert.match(await ask(session, "GET"), /^503 /);
  await gateway.until(
    () => gateway.lines.some(({ error }) => String(error).includes("the peer speaks HTTP/1.1")),
    "the line of the log",
  );
  session.close();
});
