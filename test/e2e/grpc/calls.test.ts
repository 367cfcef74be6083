import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { ClientDuplexStream, ClientReadableStream, ServerDuplexStream, StatusObject } from "@grpc/grpc-js";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { closedPort } from "../../helpers/raw-peer.ts";

type Call = ServerDuplexStream<Buffer, Uint8Array>;

const MIB = 1024 * 1024;
const OK = 0;
const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNAVAILABLE = 14;

const METHODS = {
  "/test.Echo/Say": { unary: (message: Buffer) => message },
  "/test.Echo/Fail": { unary: () => Promise.reject(Object.assign(new Error("no voice"), { code: NOT_FOUND })) },
  "/test.Echo/Chat": {
    stream(call: Call) {
      call.on("data", (message: Buffer) => call.write(Buffer.from(`${message}!`)));
      call.on("end", () => call.end());
    },
  },
  /** Responds to one message with three. */
  "/test.Echo/Repeat": {
    stream(call: Call) {
      call.on("data", (message: Buffer) => {
        for (let i = 0; i < 3; i++) call.write(Buffer.from(`${message}${i}`));
      });
      call.on("end", () => call.end());
    },
  },
  /** Responds to all messages with one. */
  "/test.Echo/Collect": {
    stream(call: Call) {
      const messages: string[] = [];
      call.on("data", (message: Buffer) => messages.push(String(message)));
      call.on("end", () => {
        call.write(Buffer.from(messages.join()));
        call.end();
      });
    },
  },
};

/** A gateway in front of `port`, without settings: it sends gRPC as HTTP/2 by default. */
function gatewayTo(port: number, policies: object = {}, listener: object = {}): Promise<LocalGateway> {
  const routes = [{ policies, backends: [{ host: `127.0.0.1:${port}` }] }];
  return LocalGateway.start({ binds: [{ port: 0, listeners: [{ ...listener, routes }] }] });
}

async function collect(call: AsyncIterable<Buffer>): Promise<string[]> {
  const messages: string[] = [];
  for await (const message of call) messages.push(String(message));
  return messages;
}

function endOf(call: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>): Promise<StatusObject> {
  return new Promise((resolve) => call.on("status", resolve));
}

async function exercise(client: GrpcClient): Promise<void> {
  const said = await client.unary("/test.Echo/Say", "hello");
  assert.deepEqual([said.status.code, said.message], [OK, "hello"]);
  assert.deepEqual(await collect(client.serverStream("/test.Echo/Repeat", "a")), ["a0", "a1", "a2"]);
  const collected = await client.clientStream("/test.Echo/Collect", ["a", "b", "c"]);
  assert.deepEqual([collected.status.code, collected.message], [OK, "a,b,c"]);
  const chat = client.bidi("/test.Echo/Chat");
  for (const text of ["a", "b"]) {
    chat.write(Buffer.from(text));
    const [reply] = (await once(chat, "data")) as [Buffer];
    assert.equal(String(reply), `${text}!`);
  }
  const ended = endOf(chat);
  chat.end();
  chat.resume();
  assert.equal((await ended).code, OK);
}

test("calls in all four forms, in plaintext", async () => {
  await using server = await GrpcServer.start(METHODS);
  await using gateway = await gatewayTo(server.port);
  using client = new GrpcClient(gateway.port());
  await exercise(client);
});

test("calls in all four forms, inside TLS", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { certFile: cert, keyFile: key } = ca.issue("one.example");
  await using server = await GrpcServer.start(METHODS);
  await using gateway = await gatewayTo(server.port, {}, { protocol: "HTTPS", tls: { cert, key } });
  using client = new GrpcClient(gateway.port(), ca.cert, "one.example");
  await exercise(client);
});

test("failures: of the service, of policies, of the connection to the backend", async () => {
  await using server = await GrpcServer.start(METHODS);
  const authorization = { rules: [{ deny: 'request.path == "/test.Echo/Secret"' }] };
  await using gateway = await gatewayTo(server.port, { authorization });
  using client = new GrpcClient(gateway.port());
  const failed = await client.unary("/test.Echo/Fail", "x");
  assert.deepEqual([failed.status.code, failed.status.details], [NOT_FOUND, "no voice"]);
  const denied = await client.unary("/test.Echo/Secret", "x");
  assert.deepEqual([denied.status.code, denied.status.details], [PERMISSION_DENIED, "authorization failed"]);
  await using lost = await gatewayTo(await closedPort());
  using other = new GrpcClient(lost.port());
  const unavailable = await other.unary("/test.Echo/Say", "x");
  assert.deepEqual([unavailable.status.code, unavailable.status.details], [UNAVAILABLE, "upstream call failed"]);
});

test("calls are counted by backend, route and status", async () => {
  await using server = await GrpcServer.start({
    ...METHODS,
    "/test.Echo/Odd": { unary: () => Promise.reject(Object.assign(new Error("odd"), { code: 99 })) },
    "/test.Echo/Never": { stream: (call: Call) => call.on("error", () => {}) },
  });
  await using gateway = await gatewayTo(server.port, { authorization: { rules: [{ deny: 'request.path == "/no"' }] } });
  using client = new GrpcClient(gateway.port());
  await client.unary("/test.Echo/Say", "x");
  await client.unary("/test.Echo/Say", "x");
  for (const path of ["/test.Echo/Fail", "/test.Echo/Odd", "/no"]) await client.unary(path, "x");
  const cancelled = client.bidi("/test.Echo/Never");
  cancelled.on("error", () => {});
  cancelled.write(Buffer.from("x"));
  await gateway.until(() => gateway.endpoints()[0]?.pending === 1, "the call at the backend");
  cancelled.cancel();
  const counts = (): string[] =>
    [...gateway.metricsText().matchAll(/^tracegate_grpc_calls_total\{(.*)\} (\d+)$/gm)].map(([, labels, count]) => {
      const [backend, route, status] = [...(labels ?? "").matchAll(/="([^"]*)"/g)].map(([, value]) => value);
      assert.equal(backend === "unknown", status === String(PERMISSION_DENIED));
      assert.notEqual(route, "unknown");
      return `${status}: ${count}`;
    });
  await gateway.until(() => counts().length === 5, "the end of the cancelled call");
  assert.deepEqual(counts().sort(), ["0: 2", "5: 1", "7: 1", "other: 1", "unknown: 1"]);
  // Requests other than gRPC are not counted.
  await fetch(`http://127.0.0.1:${gateway.port()}/`);
  assert.equal(counts().length, 5);
});

test("a backend that is lost in the middle of streams ends them with UNAVAILABLE, whether the client has ended or not", async () => {
  const server = await GrpcServer.start({
    "/test.Echo/Half": { stream: (call: Call) => call.write(Buffer.from("half")) },
  });
  await using gateway = await gatewayTo(server.port);
  using client = new GrpcClient(gateway.port());
  const calls = [client.serverStream("/test.Echo/Half", ""), client.bidi("/test.Echo/Half")];
  const ends = calls.map(endOf);
  for (const call of calls) {
    call.on("error", () => {});
    assert.equal(String((await once(call, "data"))[0]), "half");
  }
  server.stop();
  for (const { code, details } of await Promise.all(ends))
    assert.deepEqual([code, details], [UNAVAILABLE, "upstream call failed"]);
});

test("a stream that breaks off ends with a status, even if its client has not sent te: trailers", async () => {
  const server = await GrpcServer.start({
    "/test.Echo/Half": { stream: (call: Call) => call.write(Buffer.from("half")) },
  });
  await using gateway = await gatewayTo(server.port);
  const client = await H2Client.connect(gateway.port());
  client.request(1, "POST", ["content-type", "application/grpc"], "/test.Echo/Half");
  client.data(1, "\0\0\0\0\0");
  await client.until(() => client.stream(1).body.length > 0, "the first message");
  server.stop();
  const { body, sections, reset } = await client.response(1);
  assert.deepEqual([body, reset], ["\0\0\0\0\x04half", undefined]);
  assert.deepEqual(sections.at(-1), ["grpc-status", "14", "grpc-message", "upstream%20call%20failed"]);
  client.peer.socket.destroy();
});

test("the gateway enforces a deadline that the client itself does not enforce", async () => {
  let cancelled = 0;
  await using server = await GrpcServer.start({
    "/test.Echo/Never": {
      stream(call: Call) {
        call.on("cancelled", () => cancelled++);
        call.on("error", () => {});
      },
    },
  });
  const set = { "grpc-timeout": "'50m'" };
  await using inner = await gatewayTo(server.port);
  // grpc-js enforces the deadlines that it sets itself, so another gateway sets this one.
  await using outer = await gatewayTo(inner.port(), { transformations: { request: { set } } });
  using client = new GrpcClient(outer.port());
  const { status } = await client.unary("/test.Echo/Never", "x");
  assert.deepEqual([status.code, status.details], [DEADLINE_EXCEEDED, "deadline exceeded"]);
  await inner.until(() => cancelled === 1, "the cancellation");
});

test("a client that cancels, or whose deadline passes, cancels the call of the backend", async () => {
  let open = 0;
  let cancelled = 0;
  await using server = await GrpcServer.start({
    "/test.Echo/Never": {
      stream(call: Call) {
        open++;
        call.on("cancelled", () => cancelled++);
        call.on("error", () => {});
      },
    },
  });
  await using gateway = await gatewayTo(server.port);
  using client = new GrpcClient(gateway.port());
  const call = client.bidi("/test.Echo/Never");
  call.on("error", () => {});
  const ended = endOf(call);
  call.write(Buffer.from("x"));
  await gateway.until(() => open === 1, "the call at the backend");
  call.cancel();
  assert.equal((await ended).code, CANCELLED);
  await gateway.until(() => cancelled === 1, "the first cancellation");
  const { status } = await client.unary("/test.Echo/Never", "x", { deadline: Date.now() + 100 });
  assert.equal(status.code, DEADLINE_EXCEEDED);
  await gateway.until(() => cancelled === 2, "the second cancellation");
});

test("messages far beyond the windows pass in both directions", async () => {
  await using server = await GrpcServer.start(METHODS);
  await using gateway = await gatewayTo(server.port);
  using client = new GrpcClient(gateway.port());
  const large = "x".repeat(2 * MIB);
  const { status, message } = await client.unary("/test.Echo/Say", large);
  assert.equal(status.code, OK);
  assert.ok(message === large);
});

/** Writes messages until no more are accepted; returns how many were. */
function pour(call: Call | ClientDuplexStream<Buffer, Buffer>, total: number): { readonly count: number } {
  const message = Buffer.alloc(64 * 1024, "x");
  const poured = { count: 0 };
  const go = (): void => {
    while (poured.count < total) {
      poured.count++;
      if (!call.write(message)) {
        call.once("drain", go);
        return;
      }
    }
    call.end();
  };
  go();
  return poured;
}

test("in a bidirectional stream, a side that does not read slows down only its own sender", async () => {
  const total = 192;
  let atServer: Call | undefined;
  let fromServer = { count: 0 };
  await using server = await GrpcServer.start({
    ...METHODS,
    "/test.Echo/Flood": {
      stream(call: Call) {
        atServer = call;
        fromServer = pour(call, total);
      },
    },
  });
  await using gateway = await gatewayTo(server.port);
  using client = new GrpcClient(gateway.port());
  const call = client.bidi("/test.Echo/Flood");
  const fromClient = pour(call, total);
  // Neither side reads. Other calls on the same connection pass; both senders have stopped once nothing moves during one of them.
  for (let before = -1; before !== fromServer.count + fromClient.count || before === 0; ) {
    before = fromServer.count + fromClient.count;
    assert.equal((await client.unary("/test.Echo/Say", "other")).message, "other");
  }
  assert.ok(fromServer.count < total && fromClient.count < total, `${fromServer.count}, ${fromClient.count}`);
  // The client reads, the server does not.
  const received = await collect(call);
  assert.equal(received.length, total);
  assert.ok(fromClient.count < total, `${fromClient.count} messages went to a server that does not read`);
  atServer?.resume();
});
