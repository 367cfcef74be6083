import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttp1, type ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { H2Server } from "../../../test/e2e/upstream-h2/support.ts";
import { noOpenssl, TestCa } from "../../../test/helpers/certificates.ts";
import { GrpcServer } from "../../../test/helpers/grpc-server.ts";
import { closedPort } from "../../../test/helpers/raw-peer.ts";
import { until } from "../../../test/helpers/until.ts";
import { GatewayError } from "../../base/errors.ts";
import { Sweeper } from "../../base/sweeper.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import { SingleEndpoint } from "../balancers/balancer.ts";
import { Endpoints } from "../endpoints/endpoints.ts";
import { frame } from "../grpc/messages.ts";
import { Pools } from "../pools/pools.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { ConnectionSettings, HostAddress } from "../settings/pool-target.ts";
import { type GrpcStream, grpcStream, grpcUnary } from "./grpc-call.ts";
import { type CalloutRequest, callUpstream, NEEDS_BODY } from "./http-call.ts";

const ECHO = "/test.Echo/Say";
const CHAT = "/test.Echo/Chat";
const OK = { ":status": 200, "content-type": "application/grpc" };

interface Options {
  readonly timeoutMs?: number;
  readonly headers?: HeaderList;
  readonly authority?: string;
}

/** A service at a port of 127.0.0.1; its connections are closed at the end of its block. */
function serviceAt(port: number, how: ConnectionSettings & Partial<HostAddress> = {}) {
  const sweeper = new Sweeper();
  const settings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };
  const endpoints = new Endpoints(
    new Pools(settings, new Resolver("All", ANYWHERE), { onConnected: () => {} }, sweeper),
  );
  const endpoint = endpoints.acquire({ host: "127.0.0.1", port, ...how }, 1);
  const balancer = new SingleEndpoint(endpoint);
  const observed: string[] = [];
  const observer = {
    started: (target: string) => observed.push(`started ${target}`),
    ended: (status: number | null, error: string | null) => observed.push(`ended ${status} ${error}`),
  };
  const requestOf = (method: string, { timeoutMs = 0, headers = [], authority = "" }: Options) => ({
    method,
    head: { authority, headers },
    timeoutMs,
  });
  return {
    endpoint,
    observed,
    cancel: () => {},
    async unary(text: string, options: Options = {}, method = ECHO): Promise<string> {
      const request = requestOf(method, { timeoutMs: 10_000, ...options });
      const onCancel = (callback: () => void): void => {
        this.cancel = callback;
      };
      return Buffer.from(
        await grpcUnary(balancer, request, Buffer.from(text), onCancel, observer, () => false),
      ).toString();
    },
    /** The code of the GatewayError, and what its cause says. */
    async failure(options: Options = {}, method = ECHO): Promise<string> {
      return describe(await this.unary("hello", options, method).catch((error: unknown) => error));
    },
    stream(method = CHAT): Chat {
      const chat = new Chat();
      chat.stream = grpcStream(balancer, requestOf(method, {}), chat, observer);
      return chat;
    },
    [Symbol.dispose](): void {
      endpoints.release([endpoint]);
      sweeper.close();
    },
  };
}

/** One stream of messages as its caller sees it. */
class Chat {
  readonly messages: string[] = [];
  readonly ended = Promise.withResolvers<string>();
  drained = Promise.withResolvers<void>();
  stream: GrpcStream | undefined;
  #heard = Promise.withResolvers<void>();

  onMessage(message: Uint8Array): void {
    this.messages.push(Buffer.from(message).toString());
    this.#heard.resolve();
  }

  onDrain(): void {
    this.drained.resolve();
  }

  onEnd(error: GatewayError | undefined): void {
    this.ended.resolve(error === undefined ? "OK" : describe(error));
  }

  send(text: string): boolean {
    return this.stream?.write(Buffer.from(text)) ?? false;
  }

  /** Resolves when this many messages have arrived. */
  async heard(count: number): Promise<void> {
    while (this.messages.length < count) {
      this.#heard = Promise.withResolvers();
      await this.#heard.promise;
    }
  }
}

function describe(error: unknown): string {
  if (!(error instanceof GatewayError)) return `not a GatewayError: ${String(error)}`;
  return `${error.code}: ${error.cause instanceof Error ? error.cause.message : ""}`;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** A hand-written service: it gets each stream once its request has ended. */
function answering(answer: (stream: ServerHttp2Stream) => void, settings = {}): Promise<H2Server> {
  return H2Server.start((stream) => void stream.resume().once("end", () => answer(stream)), { settings });
}

/** Responds with messages and trailers. */
function reply(stream: ServerHttp2Stream, bytes: Buffer, trailers: Record<string, string>, head = {}): void {
  stream.respond({ ...OK, ...head }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end(bytes);
}

test("a real server gets the message, the metadata and the deadline", async () => {
  const seen: unknown[] = [];
  await using server = await GrpcServer.start({
    [ECHO]: {
      unary(message, metadata, authority) {
        for (const name of ["x-a", "x-b-bin", "user-agent", "te"]) seen.push(metadata.get(name));
        seen.push(authority);
        return message;
      },
    },
  });
  using service = serviceAt(server.port);
  const headers = ["x-a", "1", "x-a", "2", "x-b-bin", "AQI=", "user-agent", "mine", "te", "gzip"];
  assert.equal(await service.unary("hello", { headers, authority: "named.example" }), "hello");
  assert.deepEqual(seen, [["1, 2"], [Buffer.from([1, 2])], ["tracegate"], [], "named.example"]);
  assert.equal(await service.unary(""), "");
  assert.equal(seen.at(-1), `127.0.0.1:${server.port}`);
  using named = serviceAt(server.port, { host: "echo.test", at: ["127.0.0.1"] });
  await named.unary("");
  assert.equal(seen.at(-1), `echo.test:${server.port}`, "the name, not its address");
  assert.equal(service.observed[0], `started 127.0.0.1:${server.port}`);
  assert.equal(service.observed[1], "ended 200 null");
});

test("a deadline is sent in milliseconds, or in seconds if it has more than eight digits", async () => {
  const seen: unknown[] = [];
  const owned = new Set(["content-type", "user-agent", "te", "grpc-timeout", "grpc-accept-encoding"]);
  using server = await H2Server.start((stream, headers, raw) => {
    seen.push(headers["grpc-timeout"], headers["grpc-accept-encoding"], headers.te);
    assert.equal(raw.filter((name) => owned.has(name)).length, headers["grpc-timeout"] === undefined ? 4 : 5);
    reply(stream, frame(Buffer.from("x")), { "grpc-status": "0" });
  });
  using service = serviceAt(server.port);
  // What policies set under the protocol's own names is not sent.
  const headers = [...owned].flatMap((name) => [name, "1S"]);
  await service.unary("", { timeoutMs: 99_999_999, headers });
  await service.unary("", { timeoutMs: 200_000_000 });
  await service.unary("", { timeoutMs: 0 });
  assert.match(String(seen[0]), /^9999\d{4}m$/);
  assert.match(String(seen[3]), /^(200000|199999)S$/);
  assert.deepEqual([seen[6], seen[7], seen[8]], [undefined, "identity", "trailers"]);
});

test("the status of a real server, its message decoded; trailers alone are a response", async () => {
  const fails = (code: number, message: string) => ({
    unary: () => Promise.reject(Object.assign(new Error(message), { code })),
  });
  await using server = await GrpcServer.start({
    "/test.Echo/Missing": fails(5, "no 100 % voice: ä\n"),
    "/test.Echo/Late": fails(4, "too late"),
  });
  using service = serviceAt(server.port);
  assert.equal(
    await service.failure({}, "/test.Echo/Missing"),
    "TG_UPSTREAM_FAILED: gRPC status 5: no 100 % voice: ä\n",
  );
  assert.equal(await service.failure({}, "/test.Echo/Late"), "TG_UPSTREAM_TIMEOUT: gRPC status 4: too late");
  assert.match(await service.failure({}, "/test.Echo/Unknown"), /^TG_UPSTREAM_FAILED: gRPC status 12: /);
  assert.equal(service.observed[1], "ended null gRPC status 5: no 100 % voice: ä\n");
  assert.deepEqual([service.endpoint.pending, service.endpoint.consecutiveFailures], [0, 3]);
});

test("responses that are not gRPC, or are incomplete, have a status too", async () => {
  const answers: Record<string, (stream: ServerHttp2Stream) => void> = {
    trailersOnly: (stream) =>
      stream.respond({ ...OK, "grpc-status": "7", "grpc-message": "no%zz" }, { endStream: true }),
    noStatus: (stream) => reply(stream, frame(Buffer.from("x")), {}),
    notANumber: (stream) => reply(stream, frame(Buffer.from("x")), { "grpc-status": "x" }),
    page: (stream) => {
      stream.respond({ ":status": 503, "content-type": "text/html" });
      stream.end("<html>");
    },
    text: (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("hello");
    },
    statusOfBoth: (stream) => stream.respond({ ":status": 401, "grpc-status": "3" }, { endStream: true }),
    cutOff: (stream) => reply(stream, frame(Buffer.from("hello")).subarray(0, 7), { "grpc-status": "0" }),
    nothing: (stream) => reply(stream, Buffer.alloc(0), { "grpc-status": "0" }),
    twice: (stream) =>
      reply(stream, Buffer.concat([frame(Buffer.from("a")), frame(Buffer.from("b"))]), { "grpc-status": "0" }),
    compressed(stream) {
      const bytes = frame(Buffer.from("zipped"));
      bytes[0] = 1;
      reply(stream, bytes, { "grpc-status": "0" }, { "grpc-encoding": "gzip" });
    },
    tooLong(stream) {
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(2 ** 31, 1);
      reply(stream, prefix, { "grpc-status": "0" });
    },
  };
  using server = await H2Server.start((stream, headers) =>
    answers[headers[":path"]?.slice(1) ?? ""]?.(stream.resume()),
  );
  using service = serviceAt(server.port);
  const expected: Record<string, string> = {
    trailersOnly: "7: no%zz",
    noStatus: "2: the service has ended the call without a status",
    notANumber: "2: ",
    page: "14: the response is not gRPC: HTTP status 503, text/html",
    text: "2: the response is not gRPC: HTTP status 200",
    statusOfBoth: "3: ",
    cutOff: "13: the service has ended the call within a message",
    nothing: "13: no response message",
    twice: "13: more than one response message",
    compressed: "13: the service has compressed a message with gzip, which is not accepted",
    tooLong: "8: the service has sent a message of 2147483648 bytes; the limit is 4194304",
  };
  assert.deepEqual(Object.keys(answers).sort(), Object.keys(expected).sort());
  for (const [name, status] of Object.entries(expected))
    assert.equal(await service.failure({}, `/${name}`), `TG_UPSTREAM_FAILED: gRPC status ${status}`, name);
  assert.equal(service.endpoint.pending, 0);
});

test("a reset is a status; after REFUSED_STREAM a call is replayed, whatever the method, three attempts in all", async () => {
  const codes: readonly [code: number, name: string, status: number][] = [
    [constants.NGHTTP2_NO_ERROR, "NO_ERROR", 13],
    [constants.NGHTTP2_PROTOCOL_ERROR, "PROTOCOL_ERROR", 13],
    [constants.NGHTTP2_INTERNAL_ERROR, "INTERNAL_ERROR", 13],
    [constants.NGHTTP2_CANCEL, "CANCEL", 1],
    [constants.NGHTTP2_ENHANCE_YOUR_CALM, "ENHANCE_YOUR_CALM", 8],
    [constants.NGHTTP2_INADEQUATE_SECURITY, "INADEQUATE_SECURITY", 7],
    [constants.NGHTTP2_REFUSED_STREAM, "REFUSED_STREAM", 14],
  ];
  let sends = 0;
  using server = await H2Server.start((stream, headers) => {
    sends++;
    stream.close(Number(headers[":path"]?.slice(1)));
  });
  using service = serviceAt(server.port);
  for (const [code, name, status] of codes) {
    const text = `TG_UPSTREAM_FAILED: gRPC status ${status}: the upstream reset the stream: ${name}`;
    assert.equal(await service.failure({}, `/${code}`), text);
  }
  assert.equal(sends, codes.length + 2);
  assert.equal(service.observed.filter((line) => line.startsWith("started")).length, codes.length);
});

test("a replayed call gets its response with all its messages", async () => {
  let refuse = true;
  using server = await H2Server.start((stream) => {
    if (refuse) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else {
      stream.respond(OK, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.pipe(stream);
    }
    refuse = false;
  });
  using service = serviceAt(server.port);
  const chat = service.stream();
  chat.send("a");
  chat.send("b");
  chat.stream?.end();
  assert.equal(await chat.ended.promise, "OK");
  assert.deepEqual(chat.messages, ["a", "b"]);
  assert.deepEqual([service.endpoint.pending, service.endpoint.health], [0, 1]);
});

test("a stream with too much data to keep is not replayed", async () => {
  let sends = 0;
  using server = await H2Server.start((stream) => {
    sends++;
    stream.once("data", () => stream.close(constants.NGHTTP2_REFUSED_STREAM));
  });
  using service = serviceAt(server.port);
  const chat = service.stream();
  chat.send("x".repeat(65_536));
  const failure = "TG_UPSTREAM_FAILED: gRPC status 14: the upstream reset the stream: REFUSED_STREAM";
  assert.equal(await chat.ended.promise, failure);
  assert.equal(sends, 1);
});

test("no connection, and one that breaks while messages flow, are UNAVAILABLE", async () => {
  using nowhere = serviceAt(await closedPort());
  assert.match(await nowhere.failure(), /^TG_UPSTREAM_FAILED: gRPC status 14: connect ECONNREFUSED/);
  assert.equal(nowhere.endpoint.consecutiveFailures, 1);

  using server = await H2Server.start((stream) => {
    stream.respond(OK);
    stream.write(frame(Buffer.from("first")));
  });
  using service = serviceAt(server.port);
  const chat = service.stream();
  await chat.heard(1);
  server.sessions[0]?.destroy();
  assert.match(await chat.ended.promise, /^TG_UPSTREAM_FAILED: gRPC status 14: /);
  assert.equal(service.endpoint.consecutiveFailures, 1);
});

test("a deadline ends a call here and at the server", async () => {
  const cancelled = Promise.withResolvers<void>();
  let arrived = false;
  await using server = await GrpcServer.start({
    [CHAT]: {
      stream(call) {
        arrived = true;
        call.on("cancelled", cancelled.resolve).on("error", () => {});
      },
    },
  });
  // On a busy machine, a deadline may pass before the server gets the call.
  for (let timeoutMs = 30; !arrived; timeoutMs *= 2) {
    using service = serviceAt(server.port);
    const failure = await service.failure({ timeoutMs }, CHAT);
    assert.equal(failure, "TG_UPSTREAM_TIMEOUT: gRPC status 4: the deadline has passed");
    assert.deepEqual([service.endpoint.pending, service.endpoint.consecutiveFailures], [0, 1]);
  }
  await cancelled.promise;
});

test("a call that is cancelled ends at the server, and no event follows here", async () => {
  const calls: Promise<void>[] = [];
  const opened = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using server = await GrpcServer.start({
    [CHAT]: {
      stream(call) {
        const cancelled = Promise.withResolvers<void>();
        call.on("cancelled", cancelled.resolve).on("error", () => {});
        call.on("data", (message: Buffer) => call.write(message));
        opened[calls.length]?.resolve();
        calls.push(cancelled.promise);
      },
    },
  });
  using service = serviceAt(server.port);
  const unary = service.unary("", { timeoutMs: 0 }, "/test.Echo/Chat");
  await opened[0]?.promise;
  service.cancel();
  await calls[0];
  assert.deepEqual([service.endpoint.pending, service.endpoint.consecutiveFailures], [0, 0]);

  const startedAt = performance.now();
  const chat = service.stream();
  chat.send("hello");
  await chat.heard(1);
  const answeredAfter = performance.now() - startedAt;
  while (performance.now() - startedAt < answeredAfter + 5) await new Promise((resolve) => setImmediate(resolve));
  chat.stream?.cancel();
  await calls[1];
  const turn = new Promise<string>((resolve) => setImmediate(() => resolve("nothing")));
  assert.equal(await Promise.race([chat.ended.promise, unary, turn]), "nothing");
  assert.deepEqual([service.endpoint.pending, service.endpoint.health], [0, 1]);
  // Seconds until the first message, however long the stream lasts.
  assert.ok(service.endpoint.latency > 0 && service.endpoint.latency * 1000 <= answeredAfter);
});

test("both sides of a stream end separately", async () => {
  await using server = await GrpcServer.start({
    [CHAT]: {
      stream(call) {
        call.on("data", (message: Buffer) => call.write(Buffer.from(`${message}!`)));
        call.on("end", () => {
          call.write(Buffer.from("bye"));
          call.end();
        });
      },
    },
    "/test.Echo/Short": { stream: (call) => call.end() },
  });
  using service = serviceAt(server.port);
  const chat = service.stream();
  chat.send("a");
  await chat.heard(1);
  chat.send("b");
  chat.stream?.end();
  assert.equal(await chat.ended.promise, "OK");
  assert.deepEqual(chat.messages, ["a!", "b!", "bye"]);
  assert.equal(await service.stream("/test.Echo/Short").ended.promise, "OK");
  assert.equal(service.endpoint.pending, 0);
});

test("a server that does not read slows down the writer", async () => {
  const opened = Promise.withResolvers<ServerHttp2Stream>();
  using server = await H2Server.start((stream) => opened.resolve(stream));
  using service = serviceAt(server.port);
  const chat = service.stream();
  const piece = "x".repeat(50_000);
  assert.equal(chat.send("before there is a connection"), false);
  await chat.drained.promise;
  const stream = await opened.promise;
  stream.pause();
  let written = 1;
  for (; chat.send(piece); written++) assert.ok(written < 20);
  chat.drained = Promise.withResolvers();
  stream.resume();
  await chat.drained.promise;
  chat.stream?.cancel();
});

test("a caller that pauses slows down the server, and gets all messages and the end after it resumes", async () => {
  const total = 60;
  let blocked = 0;
  using server = await H2Server.start((stream) => {
    stream.respond(OK, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    let sent = 0;
    const more = (): void => {
      while (sent < total) {
        const message = frame(Buffer.from(`${sent++} ${"x".repeat(20_000)}`));
        if (!stream.write(message)) {
          blocked = sent;
          stream.once("drain", more);
          return;
        }
      }
      stream.end();
    };
    more();
  });
  using service = serviceAt(server.port);
  const chat = service.stream();
  await chat.heard(1);
  chat.stream?.pause();
  const heard = chat.messages.length;
  // The server can only send until the windows are full.
  let before = -1;
  await until(() => {
    const steady = blocked > 0 && before === blocked;
    before = blocked;
    return steady;
  }, "the server to be held back");
  assert.ok(blocked < total && chat.messages.length === heard, `${blocked} ${chat.messages.length}`);
  chat.stream?.resume();
  assert.equal(await chat.ended.promise, "OK");
  assert.deepEqual(
    chat.messages.map((message) => Number(message.split(" ")[0])),
    Array.from({ length: total }, (_, i) => i),
  );
});

test("messages that came with the one at which the caller paused wait for it, and so does the end", async () => {
  const texts = ["a", "b", "c"];
  using server = await answering((stream) =>
    reply(stream, Buffer.concat(texts.map((text) => frame(Buffer.from(text)))), { "grpc-status": "0" }),
  );
  using service = serviceAt(server.port);
  const chat = service.stream();
  const push = chat.messages.push.bind(chat.messages);
  chat.messages.push = (...messages) => {
    chat.stream?.pause();
    return push(...messages);
  };
  chat.stream?.end();
  for (const count of [1, 2, 3]) {
    await chat.heard(count);
    assert.equal(chat.messages.length, count);
    setImmediate(() => chat.stream?.resume());
  }
  assert.equal(await chat.ended.promise, "OK");
});

test("more calls than the server takes at once wait or get another connection, within the limits of the backend", async () => {
  using server = await answering((stream) => reply(stream, frame(Buffer.from("x")), { "grpc-status": "0" }), {
    maxConcurrentStreams: 2,
  });
  using service = serviceAt(server.port);
  const answers = await Promise.all(Array.from({ length: 30 }, () => service.unary("")));
  assert.equal(answers.length, 30);
  assert.ok(server.busiest <= 2);

  using silent = await H2Server.start(() => {}, { settings: { maxConcurrentStreams: 1 } });
  using limited = serviceAt(silent.port, { limits: { maxConnections: 1, maxPendingRequests: 1 } });
  const first = limited.stream();
  await once(silent.server, "stream");
  const second = limited.stream();
  assert.equal(await limited.failure(), "TG_POOL_FULL: gRPC status 14: no connection is free and 1 requests wait");
  assert.equal(limited.endpoint.consecutiveFailures, 0);
  second.stream?.cancel();
  first.stream?.cancel();
  assert.equal(limited.endpoint.pending, 0);
});

test("gRPC is sent as HTTP/2 whatever version other requests have, and its connections replace theirs at the limit", async () => {
  using h2 = await answering((stream) => reply(stream, frame(Buffer.from("x")), { "grpc-status": "0" }));
  const responses: ServerResponse[] = [];
  const arrived = Promise.withResolvers<void>();
  const http1 = createHttp1((_request, response) => {
    responses.push(response);
    arrived.resolve();
  });
  http1.listen(0, "127.0.0.1");
  await once(http1, "listening");
  const sockets: Socket[] = [];
  const both = createServer((socket) => {
    sockets.push(socket);
    socket.once("data", (first) => {
      const upstream = connect(first.toString().startsWith("PRI") ? h2.port : portOf(http1), "127.0.0.1");
      upstream.write(first);
      socket.pipe(upstream).on("error", () => {});
      upstream.pipe(socket).on("error", () => {});
    });
  });
  both.listen(0, "127.0.0.1");
  await once(both, "listening");
  using service = serviceAt(portOf(both), { version: "HTTP/1.1", limits: { maxConnections: 1 } });
  const request: CalloutRequest = {
    method: "GET",
    path: "/",
    headers: [],
    body: Buffer.alloc(0),
    timeoutMs: 10_000,
    maxBytes: 10,
    headDecides: NEEDS_BODY,
  };
  const http = callUpstream(new SingleEndpoint(service.endpoint), request, () => {});
  await arrived.promise;
  const grpc = service.unary("");
  responses[0]?.end("old");
  assert.equal((await http).body.toString(), "old");
  assert.equal(await grpc, "x");
  for (const server of [both, http1]) server.close();
  http1.closeAllConnections();
  for (const socket of sockets) socket.destroy();
});

test("a server that negotiates HTTP/1.1 cannot carry gRPC, and the error says so", {
  skip: noOpenssl,
}, async () => {
  using ca = new TestCa();
  const { cert, key } = ca.issue("localhost");
  const server = createHttps({ cert, key }).listen(0, "127.0.0.1");
  await once(server, "listening");
  using service = serviceAt(portOf(server), { tls: { insecure: true, insecureHost: true, alpn: ["h2", "http/1.1"] } });
  const why = "the server has agreed to HTTP/1.1 only, which cannot carry gRPC";
  assert.equal(await service.failure(), `TG_UPSTREAM_FAILED: gRPC status 14: ${why}`);
  assert.equal(service.endpoint.pending, 0);
  server.close();
  server.closeAllConnections();
});

test("a service that has gone away is called on another connection", async () => {
  await using first = await GrpcServer.start({ [ECHO]: { unary: (message) => message } });
  using service = serviceAt(first.port);
  assert.equal(await service.unary("before"), "before");
  first.stop();
  await using second = await GrpcServer.start({ [ECHO]: { unary: (message) => message } }, first.port);
  assert.ok(second.port > 0);
  assert.equal(await service.unary("after"), "after");
});

test("a request that began before a reload still calls the service whose pool has been closed", async () => {
  await using server = await GrpcServer.start({ [ECHO]: { unary: (message) => message } });
  const service = serviceAt(server.port);
  assert.equal(await service.unary("before"), "before");
  service[Symbol.dispose]();
  assert.equal(await service.unary("after"), "after");
  await until(() => service.endpoint.pool.use.active + service.endpoint.pool.use.idle === 0, "the last connection");
});
