import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { FRONTEND } from "../../../test/helpers/frontend.ts";
import { H2Client } from "../../../test/helpers/h2-client.ts";
import type { Frontend } from "../../ir/ir.ts";
import { setMemoryShort } from "../../net/frugality.ts";
import { acceptLocally } from "../../net/testing/acceptor.ts";
import { CANCEL, HEADERS } from "../h2/frames.ts";
import type { HeaderList, HttpRequest } from "../message/message.ts";
import { type Downstream, type HttpHost, type ServerStream, TUNNEL, UNKNOWN_LENGTH } from "../stream.ts";
import { Http2ServerConnection } from "./http2-connection.ts";

/** One request as the proxy's side sees it. */
class Exchange implements ServerStream {
  readonly downstream: Downstream;
  readonly request: HttpRequest;
  readonly events: string[] = [];
  readonly activity = { phase: "test" };
  body = "";
  trailers: HeaderList = [];

  constructor(downstream: Downstream, request: HttpRequest) {
    this.downstream = downstream;
    this.request = request;
  }

  onBody(buffer: Buffer, from: number, to: number): void {
    this.body += buffer.toString("latin1", from, to);
  }
  onBodyBatch(): void {}
  onBodyEnd(trailers: HeaderList): void {
    this.trailers = trailers;
    this.events.push("end");
  }
  onClientGone(code: string, message: string): void {
    this.events.push(`${code} ${message}`);
  }
  onClientDrain(): void {
    this.events.push("drain");
  }

  /** A whole response. */
  answer(status: number, body = "", headers: HeaderList = []): void {
    this.downstream.sendHead({ status, headers }, body.length, null);
    this.downstream.sendBody(Buffer.from(body), 0, body.length);
    this.downstream.sendEnd([]);
  }
}

interface Host {
  frontend: Frontend;
  draining: boolean;
  closesIdle: boolean;
}

interface Server extends AsyncDisposable {
  readonly port: number;
  readonly host: Host;
  readonly exchanges: Exchange[];
  readonly connections: Http2ServerConnection[];
  /** Requests that did not become an exchange. */
  readonly rejected: string[];
  readonly faults: unknown[];
  client(settings?: readonly number[]): Promise<H2Client>;
}

/** A server that speaks only HTTP/2; `start` begins each exchange. */
async function serve(start: (exchange: Exchange) => void, frontend: Partial<Frontend> = {}): Promise<Server> {
  const exchanges: Exchange[] = [];
  const connections: Http2ServerConnection[] = [];
  const rejected: string[] = [];
  const faults: unknown[] = [];
  const clients: H2Client[] = [];
  const host: HttpHost & Host = {
    frontend: { ...FRONTEND, ...frontend },
    draining: false,
    closesIdle: false,
    onVersionChange: () => {},
    onConnectionClose: (connection) => connections.splice(connections.indexOf(connection as Http2ServerConnection), 1),
    onFault: (error) => faults.push(error),
  };
  const acceptor = await acceptLocally((transport) => {
    const connection = new Http2ServerConnection(transport, host, {
      open: (downstream, request) => {
        const exchange = new Exchange(downstream, request);
        exchanges.push(exchange);
        return Object.assign(exchange, { start: () => start(exchange) });
      },
      rejected: (_from, code, detail, received) =>
        rejected.push(`${code} ${detail}${received === undefined ? "" : "*"}`),
    });
    connections.push(connection);
    return connection;
  });
  return {
    port: acceptor.port,
    host,
    exchanges,
    connections,
    rejected,
    faults,
    async client(settings) {
      const client = await H2Client.connect(acceptor.port, settings);
      clients.push(client);
      // Both sides have acknowledged the settings of the other.
      await client.until(() => client.settings.size > 0, "the settings");
      await client.settled();
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const { peer } of clients) peer.socket.destroy();
      for (const connection of [...connections]) connection.terminate("the test is over");
      acceptor.close();
    },
  };
}

function read({ downstream }: Exchange): void {
  downstream.readBody();
}

test("a body with its trailers goes in, a response with its trailers comes out", async () => {
  await using server = await serve(read);
  const client = await server.client();
  client.request(1, "POST", ["te", "trailers", "x-a", "1"]);
  client.data(1, "one ", false);
  client.data(1, "two", false);
  client.headers(1, ["x-sum", "7", "authorization", "no"]);
  await client.until(() => server.exchanges[0]?.events[0] === "end", "the end of the request");
  const [exchange] = server.exchanges;
  assert.ok(exchange);
  const { downstream, request } = exchange;
  assert.deepEqual([request.method, request.version, request.headers], ["POST", "HTTP/2", ["x-a", "1"]]);
  assert.deepEqual([exchange.body, exchange.trailers], ["one two", ["x-sum", "7"]]);
  assert.deepEqual([downstream.requestLength, downstream.bodyBytes], [UNKNOWN_LENGTH, 7]);
  assert.equal(downstream.trailersAccepted, true);
  downstream.sendInformational(103, ["link", "</a>"]);
  downstream.sendHead(
    { status: 200, headers: ["x-b", "2", "connection", "close", "keep-alive", "1"] },
    UNKNOWN_LENGTH,
    null,
  );
  downstream.sendBody(Buffer.from("hello"), 0, 5);
  downstream.sendEnd(["grpc-status", "0"]);
  const response = await client.response(1);
  assert.deepEqual(response.sections, [
    [":status", "103", "link", "</a>"],
    [":status", "200", "x-b", "2"],
    ["grpc-status", "0"],
  ]);
  assert.equal(response.body, "hello");
  assert.equal(response.reset, undefined);
});

test("requests of one connection get their responses as they finish, not in their order", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  for (const id of [1, 3, 5]) client.request(id);
  await client.until(() => server.exchanges.length === 3, "three requests");
  server.exchanges[2]?.answer(200, "third");
  assert.equal((await client.response(5)).body, "third");
  server.exchanges[0]?.answer(200, "first");
  assert.equal((await client.response(1)).body, "first");
  assert.deepEqual(server.connections[0]?.activity.exchanges, [{ phase: "test" }]);
});

test("responses without a body end with their head", async () => {
  await using server = await serve((exchange) => {
    const { method } = exchange.request;
    if (method === "HEAD") exchange.answer(200, "not sent", ["content-length", "8"]);
    else if (method === "GET") exchange.answer(204);
    else exchange.answer(200, "", ["content-length", "0"]);
  });
  const client = await server.client();
  client.request(1, "HEAD");
  client.request(3);
  client.request(5, "DELETE");
  client.data(5, "");
  for (const id of [1, 3, 5]) {
    const { sections, dataFrames, ended } = await client.response(id);
    assert.deepEqual([sections.length, dataFrames, ended], [1, 0, true]);
  }
});

test("malformed requests reset their stream only, and are recorded", async () => {
  await using server = await serve((exchange) => exchange.answer(200));
  const client = await server.client();
  client.headers(1, [":method", "GET", ":scheme", "http", ":authority", "a", "x-tracegate-trace-token", "t"]);
  client.request(3, "GET", ["connection", "close"]);
  client.request(5, "GET", ["X-Upper", "1"]);
  client.request(7, "GET", ["x-a", "a\nb"]);
  client.request(9);
  for (const id of [1, 3, 5, 7]) assert.equal((await client.response(id)).reset, "PROTOCOL_ERROR", String(id));
  assert.equal(H2Client.status(await client.response(9)), 200);
  assert.equal(server.rejected.length, 4);
  // With what has arrived of them, for a trace that waits for its token.
  assert.ok(server.rejected.every((each) => each.startsWith("TG_INVALID_REQUEST ") && each.endsWith("*")));
});

test("what is wrong with a body resets the stream", async () => {
  await using server = await serve(read);
  const client = await server.client();
  client.request(1, "POST", ["content-length", "3"]);
  client.data(1, "four");
  client.request(3, "POST", ["content-length", "5"]);
  client.data(3, "four");
  client.request(5, "POST", ["content-length", "0"]);
  client.data(5, "x");
  client.request(7, "POST");
  client.headers(7, ["x-a", "1"], false);
  client.request(9, "POST");
  client.headers(9, [":path", "/"]);
  client.request(11, "POST");
  client.headers(11, ["content-length", "0"]);
  for (const id of [1, 3, 5, 7, 9, 11]) assert.equal((await client.response(id)).reset, "PROTOCOL_ERROR", String(id));
  for (const { events } of server.exchanges) {
    assert.equal(events.length, 1);
    assert.match(events[0] ?? "", /^TG_INVALID_REQUEST /);
  }
  client.request(13, "POST", ["content-length", "0"]);
  client.data(13, "");
  await client.until(() => server.exchanges.length === 7, "the next request");
  server.exchanges[6]?.answer(200);
  assert.equal(H2Client.status(await client.response(13)), 200);
});

test("requests over a limit get the same responses as in HTTP/1.1, and the connection continues", async () => {
  await using server = await serve(read, {
    maxRequestBodySize: 5,
    maxHeaders: 4,
    maxTargetSize: 20,
    maxHeadSize: 1024,
  });
  const client = await server.client();
  client.request(1, "POST", ["content-length", "6"]);
  client.request(3, "POST");
  client.data(3, "123456", false);
  client.request(5, "GET", ["a", "", "b", "", "c", "", "d", "", "e", ""]);
  client.request(7, "GET", [], `/${"x".repeat(20)}`);
  client.request(9, "GET", ["x-long", "x".repeat(1000)]);
  client.request(11, "GET", ["expect", "magic"]);
  client.request(13, "GET", [], "/a/../b");
  client.request(15, "HEAD", [], "/a/../b");
  const statuses = [413, 413, 431, 414, 431, 417, 400, 400];
  for (const [i, status] of statuses.entries()) {
    const response = await client.response(2 * i + 1);
    assert.equal(H2Client.status(response), status, String(2 * i + 1));
    assert.ok(response.sections[0]?.includes("date"));
    assert.equal(response.ended, true);
    assert.equal(response.body === "", i === 7);
  }
  // Neither body is needed now.
  await client.until(() => [1, 3].every((id) => client.stream(id).reset === "NO_ERROR"), "two resets");
  client.request(17);
  await client.until(() => server.exchanges.length === 2, "the next request");
});

test("crumbs of a cookie count as one field", async () => {
  await using server = await serve((exchange) => exchange.answer(200), { maxHeaders: 2 });
  const client = await server.client();
  client.request(1, "GET", Array.from({ length: 100 }, (_, i) => ["cookie", `c${i}=1`]).flat());
  assert.equal(H2Client.status(await client.response(1)), 200);
});

test("a response before the end of the request asks the client to stop", async () => {
  await using server = await serve((exchange) => exchange.answer(401, "who are you?"));
  const client = await server.client();
  client.request(1, "POST");
  client.data(1, "x".repeat(10_000), false);
  await client.until(() => client.stream(1).reset !== undefined, "the reset");
  const { ended, body, reset } = client.stream(1);
  assert.deepEqual([ended, body, reset], [true, "who are you?", "NO_ERROR"]);
});

test("an early response that the client takes slowly is whole before the reset", async () => {
  const body = "x".repeat(100_000);
  await using server = await serve((exchange) => exchange.answer(200, body));
  // SETTINGS_INITIAL_WINDOW_SIZE.
  const client = await server.client([4, 1000]);
  client.request(1, "POST");
  await client.until(() => client.stream(1).body.length === 1000, "the first window");
  assert.equal(client.stream(1).reset, undefined);
  client.credit(1, 200_000);
  client.credit(0, 200_000);
  await client.until(() => client.stream(1).reset !== undefined, "the reset");
  assert.deepEqual([client.stream(1).body.length, client.stream(1).ended], [100_000, true]);
});

test("a response of the wrong length is reset, and never longer than announced", async () => {
  await using server = await serve(({ downstream, request }) => {
    downstream.sendHead({ status: 200, headers: ["content-length", "5"] }, 5, null);
    const body = Buffer.from(request.path === "/short" ? "four" : "sixsix");
    downstream.sendBody(body, 0, body.length);
    downstream.sendEnd([]);
  });
  const client = await server.client();
  client.request(1, "GET", [], "/short");
  client.request(3, "GET", [], "/long");
  assert.equal((await client.response(1)).reset, "INTERNAL_ERROR");
  assert.equal((await client.response(3)).body, "sixsi");
});

test("a slow client stops its stream, and no other", async () => {
  await using server = await serve(() => {});
  const client = await server.client([4, 1000]);
  client.request(1);
  client.request(3);
  await client.until(() => server.exchanges.length === 2, "two requests");
  const [slow, other] = server.exchanges;
  assert.ok(slow && other);
  slow.downstream.sendHead({ status: 200, headers: [] }, UNKNOWN_LENGTH, null);
  const piece = Buffer.alloc(16_000, "x");
  let pieces = 0;
  do pieces++;
  while (slow.downstream.sendBody(piece, 0, piece.length) && pieces < 100);
  assert.ok(pieces < 10, `${pieces} pieces were taken`);
  assert.equal(slow.downstream.flush(), false);
  other.answer(200, "quick");
  assert.equal((await client.response(3)).body, "quick");
  client.credit(1, 1_000_000);
  client.credit(0, 1_000_000);
  await client.until(() => slow.events.includes("drain"), "the drain");
  slow.downstream.sendEnd([]);
  assert.equal((await client.response(1)).body.length, pieces * piece.length);
});

test("an upload that is not taken is bounded by its window, and does not stop another", async () => {
  await using server = await serve((exchange) => {
    if (exchange.request.path === "/read") exchange.downstream.readBody();
  });
  const client = await server.client();
  client.request(1, "POST", [], "/held");
  assert.equal(client.settings.get(4), 256 * 1024);
  for (let sent = 0; sent < 256 * 1024; sent += 16_384) client.data(1, "x".repeat(16_384), false);
  client.request(3, "POST", [], "/read");
  client.data(3, "taken");
  await client.until(() => server.exchanges[1]?.events[0] === "end", "the end of the other request");
  assert.equal(server.exchanges[0]?.body, "");
  server.exchanges[0]?.downstream.readBody();
  assert.equal(server.exchanges[0]?.body.length, 256 * 1024);
  // Beyond the window: the client broke flow control, which ends only its stream.
  client.request(5, "POST", [], "/held");
  for (let sent = 0; sent <= 256 * 1024; sent += 16_384) client.data(5, "x".repeat(16_384), false);
  assert.equal((await client.response(5)).reset, "FLOW_CONTROL_ERROR");
});

test("a client that resets a stream ends its request only", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  client.request(1);
  client.request(3);
  client.reset(1, 8);
  await client.until(() => server.exchanges[0]?.events.length === 1, "the end of the first");
  assert.match(server.exchanges[0]?.events[0] ?? "", /^TG_CLIENT_GONE .*CANCEL/);
  server.exchanges[1]?.answer(200);
  assert.equal(H2Client.status(await client.response(3)), 200);
});

test("a connection that closes ends all its requests, and so does terminate", async () => {
  await using server = await serve(() => {});
  const [left, terminated] = [await server.client(), await server.client()];
  for (const client of [left, terminated]) {
    client.request(1);
    client.request(3);
    await client.settled();
  }
  left.peer.socket.destroy();
  while (server.exchanges.filter(({ events }) => events.length === 1).length < 2) await new Promise(setImmediate);
  server.connections.at(-1)?.terminate("the gateway shut down");
  assert.ok(server.exchanges.every(({ events }) => events.length === 1));
  assert.match(server.exchanges[3]?.events[0] ?? "", /the gateway shut down before the request was complete/);
  await terminated.closed();
});

test("an exception in an exchange resets its stream only", async () => {
  await using server = await serve((exchange) => {
    if (exchange.request.path === "/bad") throw new Error("a defect");
    exchange.answer(200);
  });
  const client = await server.client();
  client.request(1, "GET", [], "/bad");
  client.request(3);
  assert.equal((await client.response(1)).reset, "INTERNAL_ERROR");
  assert.equal(H2Client.status(await client.response(3)), 200);
  assert.equal(server.faults.length, 1);
});

// ── tunnels ──

test("CONNECT becomes a tunnel: early bytes are kept, each side ends separately", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  client.headers(1, [":method", "CONNECT", ":authority", "a.example:443"], false);
  client.data(1, "early", false);
  await client.settled();
  const [tunnel] = server.exchanges;
  assert.ok(tunnel);
  assert.deepEqual([tunnel.request.method, tunnel.request.authority, tunnel.body], ["CONNECT", "a.example:443", ""]);
  assert.equal(tunnel.downstream.requestLength, 0);
  tunnel.downstream.sendHead({ status: 200, headers: [] }, TUNNEL, null);
  tunnel.downstream.readBody();
  assert.equal(tunnel.body, "early");
  tunnel.downstream.sendBody(Buffer.from("down"), 0, 4);
  tunnel.downstream.sendEnd([]);
  const { sections, body } = await client.response(1);
  assert.deepEqual([sections, body], [[[":status", "200"]], "down"]);
  client.data(1, " late", true);
  await client.until(() => tunnel.events.length > 0, "the end of the client's half");
  assert.deepEqual([tunnel.body, tunnel.events], ["early late", ["end"]]);
});

test("a CONNECT whose client has ended already is a tunnel with an end", async () => {
  await using server = await serve(({ downstream }) => {
    downstream.sendHead({ status: 200, headers: [] }, TUNNEL, null);
    downstream.readBody();
  });
  const client = await server.client();
  client.headers(1, [":method", "CONNECT", ":authority", "a.example:443"]);
  await client.until(() => server.exchanges[0]?.events[0] === "end", "the end of the client's half");
});

test("a rejected CONNECT resets the stream after its response", async () => {
  await using server = await serve((exchange) => exchange.answer(405, "no"));
  const client = await server.client();
  client.headers(1, [":method", "CONNECT", ":authority", "a.example:443"], false);
  client.data(1, "early", false);
  await client.until(() => client.stream(1).reset !== undefined, "the reset");
  assert.deepEqual([H2Client.status(client.stream(1)), client.stream(1).reset], [405, "NO_ERROR"]);
});

test("a broken tunnel is reset by CONNECT_ERROR", async () => {
  await using server = await serve(({ downstream }) => {
    downstream.sendHead({ status: 200, headers: [] }, TUNNEL, null);
    downstream.abort();
  });
  const client = await server.client();
  client.headers(1, [":method", "CONNECT", ":authority", "a.example:443"], false);
  assert.equal((await client.response(1)).reset, "CONNECT_ERROR");
});

test("a tunnel has no trailers: HEADERS reset it, with END_STREAM too", async () => {
  await using server = await serve(({ downstream }) => downstream.sendHead({ status: 200, headers: [] }, TUNNEL, null));
  const client = await server.client();
  for (const [id, end] of [
    [1, true],
    [3, false],
  ] as const) {
    client.headers(id, [":method", "CONNECT", ":authority", "a.example:443"], false);
    await client.until(() => client.stream(id).sections.length === 1, "the tunnel");
    client.headers(id, ["x-trailer", "1"], end);
    assert.equal((await client.response(id)).reset, "PROTOCOL_ERROR");
  }
});

test("a WebSocket is an upgrade inside, and a 200 without its proof outside", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  // ENABLE_CONNECT_PROTOCOL.
  assert.equal(client.settings.get(8), 1);
  const pseudo = [":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":path", "/c", ":authority", "a"];
  client.headers(1, [...pseudo, "sec-websocket-version", "13"], false);
  await client.until(() => server.exchanges.length === 1, "the request");
  const { request, downstream } = server.exchanges[0] as Exchange;
  assert.deepEqual([request.method, downstream.upgrade], ["GET", "websocket"]);
  assert.deepEqual(request.headers.slice(0, 3), ["sec-websocket-version", "13", "sec-websocket-key"]);
  const headers = [
    "sec-websocket-accept",
    "x",
    "connection",
    "upgrade",
    "upgrade",
    "websocket",
    "sec-websocket-protocol",
    "p",
  ];
  downstream.sendHead({ status: 101, headers }, TUNNEL, null);
  await client.until(() => client.stream(1).sections.length === 1, "the response");
  assert.deepEqual(client.stream(1).sections[0], [":status", "200", "sec-websocket-protocol", "p"]);
});

// ── deadlines; the clock is the test's ──

/** `pass` moves the mocked clock and sweeps every connection of `server`. */
function clock(t: TestContext): { pass(server: Server, ms: number): void } {
  // Whole milliseconds: sums of fractions are not exact, and a deadline would be missed by a fraction.
  let time = Math.ceil(performance.now());
  t.mock.method(performance, "now", () => time);
  return {
    pass(server, ms) {
      time += ms;
      for (const connection of [...server.connections]) connection.sweep(time);
    },
  };
}

test("a body that trickles in or stops is 408, one that is not taken 504; others continue", async (t) => {
  const time = clock(t);
  await using server = await serve((exchange) => exchange.downstream.readBody(), { streamIdleTimeout: 30_000 });
  const client = await server.client();
  client.request(1, "POST", [], "/slow");
  client.data(1, "x", false);
  client.request(3, "POST", [], "/stops");
  client.data(3, "x".repeat(10_000), false);
  client.request(5, "POST", [], "/not-taken");
  client.data(5, "x", false);
  await client.until(() => server.exchanges[2]?.body === "x", "the bodies");
  server.exchanges[2]?.downstream.pauseBody();
  time.pass(server, 5000);
  time.pass(server, 6000);
  assert.equal(H2Client.status(await client.response(1)), 408);
  assert.equal(client.stream(3).ended, false);
  time.pass(server, 30_000);
  assert.equal(H2Client.status(await client.response(3)), 408);
  assert.equal(H2Client.status(await client.response(5)), 504);
  await client.until(() => [1, 3, 5].every((id) => client.stream(id).reset === "NO_ERROR"), "three resets");
  const { body, ended } = client.stream(3);
  assert.deepEqual([body, ended], ["request timeout", true]);
  assert.deepEqual(
    server.exchanges.map(({ events }) => events[0]?.split(" ")[0]),
    ["TG_CLIENT_TIMEOUT", "TG_CLIENT_TIMEOUT", "TG_UPSTREAM_TIMEOUT"],
  );
  client.request(7);
  await client.until(() => server.exchanges.length === 4, "another request");
});

test("a stream of gRPC may be quiet, and so may one whose response has begun", async (t) => {
  const time = clock(t);
  await using server = await serve((exchange) => exchange.downstream.readBody(), { streamIdleTimeout: 30_000 });
  const client = await server.client();
  client.request(1, "POST", ["content-type", "application/grpc+proto"]);
  client.request(3, "POST");
  client.request(5, "POST");
  for (const id of [1, 3, 5]) client.data(id, "x", false);
  await client.until(() => server.exchanges[2]?.body === "x", "the bodies");
  server.exchanges[1]?.downstream.sendHead({ status: 200, headers: [] }, UNKNOWN_LENGTH, null);
  time.pass(server, 5000);
  time.pass(server, 15_000);
  assert.equal(H2Client.status(await client.response(5)), 408);
  for (const id of [1, 3]) client.data(id, "y", true);
  await client.until(() => server.exchanges.slice(0, 2).every(({ body }) => body === "xy"), "more of the bodies");
  assert.equal(client.stream(1).sections.length, 0);
});

test("a request that waits for its upstream has no deadline here; a response that is not taken has", async (t) => {
  const time = clock(t);
  await using server = await serve(read, { streamIdleTimeout: 30_000 });
  const client = await server.client([4, 100]);
  client.request(1);
  client.request(3, "POST");
  client.data(3, "body");
  await client.until(() => server.exchanges[1]?.events[0] === "end", "two requests");
  server.exchanges[0]?.answer(200, "x".repeat(1000));
  await client.until(() => client.stream(1).body.length === 100, "the first window");
  time.pass(server, 1000);
  time.pass(server, 20_000);
  time.pass(server, 20_000);
  assert.equal((await client.response(1)).reset, "CANCEL");
  assert.deepEqual(server.exchanges[1]?.events, ["end"]);
  server.exchanges[1]?.answer(200, "late");
  assert.equal((await client.response(3)).body, "late");
});

test("a request whose response is held back has a deadline for the body of the response", async (t) => {
  const time = clock(t);
  await using server = await serve(read, { streamIdleTimeout: 30_000 });
  const client = await server.client();
  client.request(1, "POST");
  client.data(1, "body");
  await client.until(() => server.exchanges[0]?.events[0] === "end", "the request");
  // The upstream has taken the last bytes.
  server.exchanges[0]?.downstream.resumeBody();
  time.pass(server, 1000);
  time.pass(server, 30_000);
  server.exchanges[0]?.downstream.awaitResponseBody();
  time.pass(server, 1000);
  time.pass(server, 29_000);
  server.exchanges[0]?.downstream.awaitResponseBody();
  time.pass(server, 1000);
  assert.deepEqual(server.exchanges[0]?.events, ["end"]);
  time.pass(server, 30_000);
  assert.equal(H2Client.status(await client.response(1)), 504);
});

test("an idle connection is closed by GOAWAY, one with a request is not", async (t) => {
  const time = clock(t);
  await using server = await serve(() => {}, { idleTimeout: 60_000 });
  const [idle, busy] = [await server.client(), await server.client()];
  busy.request(1);
  await idle.settled();
  await busy.settled();
  time.pass(server, 1000);
  time.pass(server, 61_000);
  await idle.closed();
  assert.deepEqual(idle.goAways.slice(0, 2), ["2147483647, NO_ERROR", "0, NO_ERROR"]);
  assert.deepEqual(busy.goAways, []);
  server.exchanges[0]?.answer(200);
  assert.equal(H2Client.status(await busy.response(1)), 200);
});

test("a head that trickles in ends the connection", async (t) => {
  const time = clock(t);
  await using server = await serve(() => {}, { headerReadTimeout: 10_000 });
  const client = await server.client();
  client.request(1);
  const before = server.connections[0]?.bytesReceived ?? 0;
  client.send(HEADERS, 0, 3);
  await client.until(() => (server.connections[0]?.bytesReceived ?? 0) > before, "the beginning of the head");
  time.pass(server, 5000);
  assert.deepEqual(client.goAways, []);
  time.pass(server, 6000);
  await client.closed();
  assert.deepEqual(client.goAways, ["1, ENHANCE_YOUR_CALM"]);
  assert.match(server.rejected[0] ?? "", /^TG_INVALID_REQUEST ENHANCE_YOUR_CALM: /);
});

test("a silent client is sent a PING, and its connection is closed if it does not acknowledge it", async (t) => {
  const time = clock(t);
  const http2 = { keepaliveInterval: 30_000, keepaliveTimeout: 5000 };
  await using server = await serve(() => {}, { http2 });
  const client = await server.client();
  client.request(1);
  await client.settled();
  time.pass(server, 1000);
  time.pass(server, 30_000);
  await client.until(() => client.pings === 1, "the PING");
  await client.settled();
  client.silent = true;
  time.pass(server, 1000);
  time.pass(server, 30_000);
  await client.until(() => client.pings === 2, "another PING");
  assert.deepEqual(server.exchanges[0]?.events, []);
  time.pass(server, 6000);
  await client.closed();
  assert.match(server.exchanges[0]?.events[0] ?? "", /^TG_CLIENT_GONE /);
});

// ── leaving ──

test("a client that is asked to leave gets two GOAWAYs, and none of its requests is lost", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  client.silent = true;
  client.request(1);
  await client.settled();
  server.connections[0]?.askToReconnect();
  server.connections[0]?.askToReconnect();
  await client.until(() => client.pings === 1, "the PING");
  assert.deepEqual(client.goAways, ["2147483647, NO_ERROR"]);
  // On its way when the GOAWAY came.
  client.request(3);
  await client.until(() => server.exchanges.length === 2, "the second request");
  client.silent = false;
  client.send(6, 1, 0, Buffer.alloc(8));
  await client.until(() => client.goAways.length === 2, "the second GOAWAY");
  assert.equal(client.goAways[1], "3, NO_ERROR");
  // After it: ignored, and the client knows that it was not served.
  client.request(5);
  await client.settled();
  assert.equal(server.exchanges.length, 2);
  for (const exchange of server.exchanges) exchange.answer(200, "served");
  for (const id of [1, 3]) assert.equal((await client.response(id)).body, "served");
  await client.closed();
  assert.equal(client.peer.ended, "end");
});

test("a client that does not acknowledge the PING gets its last GOAWAY after a while", async (t) => {
  const time = clock(t);
  await using server = await serve(() => {}, { maxConnectionDuration: 60_000 });
  const client = await server.client();
  client.silent = true;
  await client.settled();
  time.pass(server, 61_000);
  await client.until(() => client.goAways.length === 1, "the first GOAWAY");
  time.pass(server, 1500);
  assert.equal(server.connections[0]?.activity.state, "leaving");
  time.pass(server, 1000);
  await client.closed();
  assert.deepEqual(client.goAways.slice(0, 2), ["2147483647, NO_ERROR", "0, NO_ERROR"]);
});

test("while clients leave, a new connection is served once and then asked to leave", async () => {
  await using server = await serve((exchange) => exchange.answer(200));
  server.host.draining = true;
  const client = await server.client();
  await client.settled();
  assert.deepEqual(client.goAways, []);
  client.request(1);
  assert.equal(H2Client.status(await client.response(1)), 200);
  await client.closed();
  assert.deepEqual(client.goAways[0], "2147483647, NO_ERROR");
});

test("once idle connections close, one closes with its last stream", async () => {
  await using server = await serve(() => {});
  const client = await server.client();
  client.request(1);
  await client.settled();
  server.host.closesIdle = true;
  server.connections[0]?.closeIfIdle();
  server.exchanges[0]?.answer(200, "served");
  assert.equal((await client.response(1)).body, "served");
  await client.closed();
  assert.deepEqual(client.goAways.slice(0, 2), ["2147483647, NO_ERROR", "1, NO_ERROR"]);
});

// ── sharing the connection ──

test("more streams than announced are rejected", async () => {
  await using server = await serve(() => {}, { http2: { maxConcurrentStreams: 2 } });
  const client = await server.client();
  for (const id of [1, 3, 5]) client.request(id);
  assert.equal((await client.response(5)).reset, "REFUSED_STREAM");
  assert.equal(server.exchanges.length, 2);
  assert.equal(client.settings.get(3), 2);
});

test("the settings of the configuration are announced", async () => {
  const http2 = { windowSize: 70_000, connectionWindowSize: 140_000, frameSize: 20_000, maxHeaderSize: 5000 };
  await using server = await serve(() => {}, { http2 });
  const client = await server.client();
  await client.until(() => client.settings.size > 0, "the settings");
  assert.deepEqual(
    [4, 5, 6].map((id) => client.settings.get(id)),
    [70_000, 20_000, 5000],
  );
});

test("connections that are opened while the thread is frugal begin with smaller windows", async (t) => {
  await using server = await serve(() => {});
  t.after(() => setMemoryShort(false));
  setMemoryShort(true);
  assert.equal((await server.client()).settings.get(4), 64 * 1024);
  setMemoryShort(false);
  assert.equal((await server.client()).settings.get(4), 256 * 1024);
});

/**
 * Responds to all exchanges with 65,535 bytes each. The response of stream 1 takes the whole window of the connection, so the
 * others compete for the credit that the returned function gives. It resolves to the bytes that each of `ids` has received so far.
 */
async function contend(server: Server, client: H2Client, ids: readonly number[]): Promise<Share> {
  await client.settled();
  for (const exchange of server.exchanges) exchange.answer(200, "x".repeat(65_535));
  await client.response(1);
  const received = (): number[] => ids.map((id) => client.stream(id).body.length);
  let granted = 0;
  return async (credit) => {
    client.credit(0, credit);
    granted += credit;
    await client.until(() => received().reduce((a, b) => a + b) === granted, `${granted} bytes`);
    return received();
  };
}

type Share = (credit: number) => Promise<number[]>;

test("urgent responses go first, by their field or by PRIORITY_UPDATE", async () => {
  await using server = await serve(() => {});
  const client = await server.client([4, 1_000_000]);
  client.request(1);
  client.request(3, "GET", ["priority", "u=7"]);
  client.request(5, "GET", ["priority", "u=1, i"]);
  client.request(7);
  client.prioritize(7, "u=0");
  const share = await contend(server, client, [3, 5, 7]);
  assert.deepEqual(await share(60_000), [0, 0, 60_000]);
  assert.deepEqual(await share(60_000), [0, 54_465, 65_535]);
});

test("a PRIORITY_UPDATE moves a response that waits behind more urgent ones", async () => {
  await using server = await serve(() => {});
  const client = await server.client([4, 1_000_000]);
  for (const [id, priority] of [
    [1, "u=3"],
    [3, "u=3, i"],
    [5, "u=7"],
  ] as const)
    client.request(id, "GET", ["priority", priority]);
  const share = await contend(server, client, [3, 5]);
  client.prioritize(5, "u=0");
  assert.deepEqual(await share(60_000), [0, 60_000]);
});

test("a PRIORITY_UPDATE may come before its stream, and overrides the field of the request", async () => {
  await using server = await serve(() => {});
  const client = await server.client([4, 1_000_000]);
  // The last one for a stream counts. Stream 5 is skipped and never opens, so its priority is forgotten.
  client.prioritize(7, "u=7");
  client.prioritize(7, "u=1");
  client.prioritize(5, "u=0");
  client.request(1);
  client.request(3, "GET", ["priority", "u=2"]);
  client.request(7, "GET", ["priority", "u=5"]);
  client.request(9);
  const share = await contend(server, client, [3, 7, 9]);
  assert.deepEqual(await share(60_000), [0, 60_000, 0]);
});

test("no more early priorities are kept than streams may be open", async () => {
  await using server = await serve(() => {}, { http2: { maxConcurrentStreams: 3 } });
  const client = await server.client([4, 1_000_000]);
  for (const id of [17, 19, 21, 5]) client.prioritize(id, "u=0");
  for (const id of [1, 3, 5]) client.request(id);
  const share = await contend(server, client, [3, 5]);
  const [third, fifth] = await share(40_000);
  // The priority of stream 5 was one too many, so both share.
  assert.ok((third ?? 0) > 0, `${third}, ${fifth}`);
});

test("early priorities of streams that can no longer be opened leave room for others", async () => {
  await using server = await serve(() => {}, { http2: { maxConcurrentStreams: 3 } });
  const client = await server.client([4, 1_000_000]);
  client.request(1);
  for (const id of [3, 5, 7]) client.prioritize(id, "u=0");
  // Skips the others.
  client.request(9);
  client.reset(9, CANCEL);
  for (const id of [3, 5, 9, 13]) client.prioritize(id, "u=0");
  client.request(11);
  client.request(13);
  const share = await contend(server, client, [11, 13]);
  assert.deepEqual(await share(40_000), [0, 40_000]);
});
