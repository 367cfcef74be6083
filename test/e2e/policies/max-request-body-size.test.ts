import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";

const PLACE = "policies[0].policy.maxRequestBodySize";
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n";

let upstream: RawUpstream;
/** For requests of HTTP/2; responds to nothing. */
let other: RawUpstream;
let gateway: LocalGateway;
/** Connections of the upstream that tests have looked at. */
let seen = 0;

before(async () => {
  // Responds to nothing by itself.
  upstream = await RawUpstream.listen();
  other = await RawUpstream.listen();
  const backend = { host: `127.0.0.1:${upstream.port}` };
  const http2 = { host: `127.0.0.1:${other.port}`, policies: { http: { version: "HTTP/2.0" } } };
  const at = (pathPrefix: string, policies: object, to: object = backend) => ({
    matches: [{ path: { pathPrefix } }],
    policies,
    backends: [to],
  });
  const routes = [
    at("/", {}),
    at("/http2", {}, http2),
    at("/more", { maxRequestBodySize: 20 }),
    at("/any", { maxRequestBodySize: 0 }),
    at("/read", { authorization: { rules: ['string(request.body) != "no"'] } }),
  ];
  gateway = await LocalGateway.start({
    binds: [{ port: 0, listeners: [{ routes }] }],
    policies: [
      {
        name: { name: "limit" },
        target: { gateway: { gatewayName: "default" } },
        policy: { maxRequestBodySize: 10 },
      },
    ],
  });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

/** The next connection that the gateway opens. */
const atUpstream = (): Promise<RawPeer> => upstream.connection(seen++);

const head = (path: string, ...fields: string[]): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${fields.map((field) => `${field}\r\n`).join("")}\r\n`;
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${"x".repeat(bytes)}\r\n`;

test("a body whose announced length is too long is refused before the client sends it", async () => {
  const client = await RawPeer.connect(gateway.port());
  client.send(head("/", "Expect: 100-continue", "Content-Length: 11"));
  const { start, body } = await client.message();
  assert.deepEqual([start, body], ["HTTP/1.1 413 Payload Too Large", "content too large"]);
  const http2 = await H2Client.connect(gateway.port());
  http2.request(1, "POST", ["content-length", "21"], "/more");
  assert.equal(H2Client.status(await http2.response(1)), 413);
  for (const { socket } of [client, http2.peer]) socket.destroy();
  await gateway.until(() => gateway.lines.length > 0, "a line of the access log");
  const [{ error } = {}] = gateway.takeLines();
  assert.equal(error, `content too large: content-length announces 11 bytes, more than the limit of 10, at ${PLACE}`);
});

test("a body without a length streams until it is too long, and ends there", async () => {
  const client = await RawPeer.connect(gateway.port());
  client.send(head("/", "Transfer-Encoding: chunked") + chunk(10));
  const backend = await atUpstream();
  await backend.take(chunk(10));
  client.send(chunk(1));
  const { start, body } = await client.message();
  assert.deepEqual([start, body], ["HTTP/1.1 413 Payload Too Large", "content too large"]);
  await backend.closed();
  assert.equal(backend.received, "", "no byte beyond the limit");
  client.socket.destroy();
  await gateway.until(() => gateway.lines.length > 0, "a line of the access log");
  assert.equal(
    gateway.takeLines().at(-1)?.error,
    `content too large: more than 10 bytes of the body have arrived, at ${PLACE}`,
  );

  const http2 = await H2Client.connect(gateway.port());
  http2.request(1, "POST", [], "/http2");
  http2.data(1, "x".repeat(11), false);
  const response = await http2.response(1);
  assert.deepEqual([H2Client.status(response), response.body], [413, "content too large"]);
  http2.peer.socket.destroy();

  using grpc = new GrpcClient(gateway.port());
  const { status } = await grpc.unary("/http2/Call", "0123456");
  assert.deepEqual([status.code, status.details], [8, "content too large"], "5 bytes of framing and 7 of the message");
});

test("a route has a limit of its own, or none", async () => {
  for (const [path, bytes] of [
    ["/more", 20],
    ["/any", 1000],
  ] as const) {
    const client = await RawPeer.connect(gateway.port());
    client.send(`${head(path, "Transfer-Encoding: chunked")}${chunk(bytes)}0\r\n\r\n`);
    const backend = await atUpstream();
    await backend.take(`${chunk(bytes)}0\r\n\r\n`);
    backend.send(reply("ok", ["Connection: close"]));
    assert.equal(statusOf(await client.message()), 200);
    client.socket.destroy();
  }
});

test("the limit holds for policies that read the body, and not for tunnels", async () => {
  const reader = await RawPeer.connect(gateway.port());
  reader.send(head("/read", "Transfer-Encoding: chunked") + chunk(11));
  assert.equal(statusOf(await reader.message()), 413, "while the rule waits for the rest");
  const client = await RawPeer.connect(gateway.port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\n");
  const backend = await atUpstream();
  await backend.message();
  backend.send(SWITCHED);
  await client.take("\r\n\r\n");
  client.send("x".repeat(1000));
  await backend.take("x".repeat(1000));
  for (const { socket } of [reader, client]) socket.destroy();
});

test("the limit holds for a body that a policy of the gateway has read to its end", async () => {
  const routes = [{ policies: { maxRequestBodySize: 10 }, backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
  const policies = { authorization: { rules: ['string(request.body) != "no"'] } };
  await using reading = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ policies, routes }] }] });
  const client = await RawPeer.connect(reading.port());
  client.send(`${head("/", "Transfer-Encoding: chunked")}${chunk(11)}0\r\n\r\n`);
  assert.equal(statusOf(await client.message()), 413);
  const next = await RawPeer.connect(reading.port());
  for (const bytes of [6, 7]) {
    next.send(`${head("/", "Transfer-Encoding: chunked")}${chunk(bytes)}0\r\n\r\n`);
    const backend = await atUpstream();
    await backend.take(`${"x".repeat(bytes)}`);
    backend.send(reply("ok", ["Connection: close"]));
    assert.equal(statusOf(await next.message()), 200, "each request of a connection has its own body");
  }
  for (const { socket } of [client, next]) socket.destroy();
});

test("a response that has begun is cut off when the body becomes too long", async () => {
  const client = await RawPeer.connect(gateway.port());
  client.send(head("/", "Transfer-Encoding: chunked") + chunk(10));
  const backend = await atUpstream();
  await backend.take(chunk(10));
  backend.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
  await client.take("begun");
  client.send(chunk(1));
  await client.closed();
  await backend.closed();
});
