import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { type RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { END_STREAM, HEADERS, RawFrames } from "../upstream-h2/frames.ts";

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

/** How a backend that speaks only HTTP/1.1 may react to the HTTP/2 preface. */
const TAKES: readonly (readonly [what: string, take: (peer: RawPeer) => void, connectTimeout?: number])[] = [
  ["closes the connection", (peer) => peer.socket.end()],
  ["resets the connection", (peer) => peer.reset()],
  ["responds 400 and closes", (peer) => peer.socket.end(reply("no", [], "400 Bad Request"))],
  ["sends something else", (peer) => peer.socket.end("220 ready for everything but HTTP/2\r\n")],
  ["says nothing", () => {}],
  ["says nothing, and has long to connect", () => {}, 120_000],
];

for (const [what, take, connectTimeout = 400] of TAKES)
  test(`a backend that ${what} is sent HTTP/1.1, and its endpoint has not failed`, async () => {
    let prefaces = 0;
    await using backend = await RawUpstream.listen(async (peer) => {
      for (;;) {
        const { start, body } = await peer.message();
        if (start.startsWith("PRI ")) {
          prefaces++;
          take(peer);
          return;
        }
        peer.send(reply(`${start.split(" ")[0]} ${body.length}`));
      }
    });
    const target = { type: "static", host: "127.0.0.1", port: backend.port } as const;
    const backendPolicies = { health: { eviction: { duration: ms(3_600_000), consecutiveFailures: 1 } } };
    const plane = await TestPlane.start([{ target, backendPolicies }], { pool: { connectTimeout } });
    await using _ = plane;
    const session = connect(`http://127.0.0.1:${plane.port}`);
    // More than is kept for replays: none of it may have been sent.
    const large = "x".repeat(200_000);
    assert.deepEqual(
      await Promise.all([ask(session, "GET"), ask(session, "POST", "body"), ask(session, "POST", large)]),
      ["200 GET 0", "200 POST 4", `200 POST ${large.length}`],
    );
    assert.equal(await ask(session, "DELETE"), "200 DELETE 0");
    assert.equal(prefaces, 1, "the guess is not repeated");
    const [endpoint] = plane.endpoints.stats();
    assert.deepEqual([endpoint?.health, endpoint?.evictedMs], [1, null]);
    session.close();
  });

test("a request that times out while the gateway waits to see if HTTP/2 works is not a failure of the endpoint", async () => {
  await using backend = await RawUpstream.listen();
  const target = { type: "static", host: "127.0.0.1", port: backend.port } as const;
  const backendPolicies = { health: { eviction: { duration: ms(3_600_000), consecutiveFailures: 1 } } };
  const policies = { timeout: { backendRequestTimeout: ms(30) } };
  await using plane = await TestPlane.start([{ target, policies, backendPolicies }]);
  const session = connect(`http://127.0.0.1:${plane.port}`);
  for (let i = 0; i < 3; i++) assert.match(await ask(session, "GET"), /^504 /);
  const [endpoint] = plane.endpoints.stats();
  assert.deepEqual([endpoint?.health, endpoint?.evictedMs], [1, null]);
  session.close();
});

test("a backend that has spoken HTTP/2 before and closes a connection at once has failed", async () => {
  await using backend = await RawUpstream.listen(async (peer) => {
    if (backend.connections.length > 1) {
      const { start } = await peer.message();
      if (start.startsWith("PRI ")) peer.socket.destroy();
      else peer.send(reply("HTTP/1.1"));
      return;
    }
    const frames = new RawFrames(peer);
    await frames.greet();
    frames.respond((await frames.next(HEADERS)).stream, {}, END_STREAM);
    peer.end();
  });
  await using plane = await TestPlane.start(backend.port);
  const session = connect(`http://127.0.0.1:${plane.port}`);
  assert.equal(await ask(session, "GET"), "200 ");
  await (await backend.connection()).closed();
  assert.match(await ask(session, "GET"), /^503 /);
  assert.equal(plane.endpoints.stats()[0]?.health, 0.7);
  assert.equal(await ask(session, "GET"), "200 HTTP/1.1", "from then on, it is a guess again");
  session.close();
});
