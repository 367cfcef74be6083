import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerHttp2Session, type ServerHttp2Stream, type Settings } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { test } from "node:test";
import { END_STREAM, HEADERS, RawFrames, SETTINGS } from "../../../test/e2e/upstream-h2/frames.ts";
import { RawUpstream } from "../../../test/helpers/raw-peer.ts";
import { until } from "../../../test/helpers/until.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import type { ConnectWaiter } from "../connections/connect-attempt.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { UpstreamEvents } from "../connections/upstream.ts";
import { Pool } from "../pools/pool.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { UpstreamSession } from "./session.ts";
import type { UpstreamWaiter } from "./session-pool.ts";

/** A server whose streams stay open until the test responds to them. */
class Server implements Disposable {
  readonly sessions: ServerHttp2Session[] = [];
  readonly streams: ServerHttp2Stream[] = [];
  readonly #server: ReturnType<typeof createServer>;

  private constructor(settings: Settings) {
    this.#server = createServer({ settings });
    this.#server.on("session", (session) => {
      this.sessions.push(session);
      session.on("error", () => {});
    });
    this.#server.on("stream", (stream) => {
      stream.on("error", () => {});
      this.streams.push(stream);
    });
  }

  static async start(settings: Settings = {}): Promise<Server> {
    const server = new Server(settings);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  answer(): void {
    for (const stream of this.streams.splice(0)) stream.respond({ ":status": 204 }, { endStream: true });
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const session of this.sessions) session.destroy();
  }
}

function openOf({ use }: Pool): number {
  return use.active + use.idle;
}

/** One call: sends a request when it gets a session, and records the outcome. */
class Caller implements UpstreamWaiter, UpstreamEvents {
  session: UpstreamSession | undefined;
  failure: string | undefined;
  /** Settles when the call is over. */
  readonly closed: Promise<string>;
  #end: (how: string) => void = () => {};

  constructor() {
    this.closed = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  onSession(session: UpstreamSession): void {
    this.session = session;
    session.send([":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a"], [], "GET", 0, this);
  }

  onConnection(): void {
    this.#end("HTTP/1.1");
  }

  onConnectFailure(code: ErrorCode, message: string): void {
    this.failure = message;
    this.#end(code);
  }

  onInformational(): void {}
  onResponse(): void {}
  onResponseBody(): void {}
  onResponseBatch(): void {}
  onUpstreamDrain(): void {}
  onUpstreamFault(): void {}

  onResponseEnd(): void {
    this.#end("answered");
  }

  onUpstreamFailure(message: string): void {
    this.#end(message);
  }
}

function poolTo(port: number, maxIdle?: number): Pool {
  const settings = { connectTimeout: 5000, idleTimeout: 1000, maxIdle, keepAliveDelay: 0 };
  const target = { host: "127.0.0.1", port, version: "HTTP/2.0" } as const;
  return new Pool(target, settings, new Resolver("All", ANYWHERE), { onConnected: () => {} });
}

function call(pool: Pool): Caller {
  const caller = new Caller();
  pool.acquire(true, false, caller);
  return caller;
}

test("one connection serves as many calls as the server allows; the next one opens another", async () => {
  using server = await Server.start({ maxConcurrentStreams: 3 });
  const pool = poolTo(server.port);
  const callers = Array.from({ length: 3 }, () => call(pool));
  await until(() => server.streams.length === 3);
  assert.equal(openOf(pool), 1);
  callers.push(call(pool));
  await until(() => server.streams.length === 4);
  assert.equal(openOf(pool), 2);
  server.answer();
  assert.deepEqual(await Promise.all(callers.map(({ closed }) => closed)), Array(4).fill("answered"));
  pool.close();
  await until(() => openOf(pool) === 0);
});

test("the first connection with room is used, so that the others can time out", async () => {
  using server = await Server.start({ maxConcurrentStreams: 1 });
  const pool = poolTo(server.port);
  const callers = [call(pool), call(pool)];
  await until(() => server.streams.length === 2);
  server.answer();
  for (const { closed } of callers) await closed;
  await until(() => callers.every(({ session }) => session?.streams === 0));
  const first = pool.sessions.takeIdle();
  for (let i = 0; i < 3; i++) {
    const next = call(pool);
    await until(() => server.streams.length === 1);
    assert.equal(next.session, first);
    server.answer();
    await next.closed;
    await until(() => first?.streams === 0);
  }
  pool.sweep(performance.now() + 10_000);
  await until(() => openOf(pool) === 0);
});

test("a request that gives up waiting gets no stream", async () => {
  using server = await Server.start({ maxConcurrentStreams: 1 });
  const pool = poolTo(server.port);
  const waiting = new Caller();
  const wait = pool.acquire(true, false, waiting);
  wait?.cancel();
  const other = call(pool);
  await until(() => server.streams.length === 1);
  server.answer();
  assert.equal(await other.closed, "answered");
  assert.equal(waiting.session, undefined);
  pool.close();
});

test("a connection that the server ends takes no more calls, and serves those that it has", async () => {
  using server = await Server.start();
  const pool = poolTo(server.port);
  const early = call(pool);
  await until(() => server.streams.length === 1);
  const late = new Caller();
  server.sessions[0]?.goaway(0);
  await until(() => early.session?.room === false);
  pool.acquire(true, false, late);
  await until(() => server.streams.length === 2);
  assert.notEqual(late.session, early.session);
  server.answer();
  assert.deepEqual([await early.closed, await late.closed], ["answered", "answered"]);
  await until(() => openOf(pool) === 1);
  pool.close();
});

test("a closed pool serves late requests, and keeps nothing", async () => {
  using server = await Server.start();
  const pool = poolTo(server.port);
  pool.close();
  const late = call(pool);
  await until(() => server.streams.length === 1);
  server.answer();
  assert.equal(await late.closed, "answered");
  await until(() => openOf(pool) === 0);
});

test("a pool that is closed while requests wait for the SETTINGS of a server still serves them", async () => {
  const settle = Promise.withResolvers<void>();
  await using server = await RawUpstream.listen(async (peer) => {
    const frames = new RawFrames(peer);
    await frames.begin();
    await settle.promise;
    frames.send(SETTINGS, 0, 0, Buffer.alloc(0));
    for (;;) frames.respond((await frames.next(HEADERS)).stream, {}, END_STREAM);
  });
  const pool = poolTo(server.port);
  const callers = [call(pool), call(pool)];
  await until(() => callers[0]?.session !== undefined);
  pool.close();
  settle.resolve();
  assert.deepEqual(await Promise.all(callers.map(({ closed }) => closed)), ["answered", "answered"]);
  await until(() => openOf(pool) === 0);
});

test("calls to a server that accepts and sends nothing fail together after the timeout", async () => {
  const silent = createTcpServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const pool = poolTo((silent.address() as AddressInfo).port);
  const callers = Array.from({ length: 3 }, () => call(pool));
  await until(() => callers[0]?.session !== undefined);
  pool.sweep(performance.now() + 1000);
  assert.equal(openOf(pool), 1);
  pool.sweep(performance.now() + 6000);
  assert.deepEqual(await Promise.all(callers.map(({ closed }) => closed)), [
    "the upstream did not send its SETTINGS of HTTP/2 in time",
    ...Array(2).fill("TG_UPSTREAM_FAILED"),
  ]);
  await until(() => openOf(pool) === 0);
  silent.close();
});

test("calls to a closed port fail together", async () => {
  const server = await Server.start();
  const pool = poolTo(server.port);
  server[Symbol.dispose]();
  const callers = Array.from({ length: 3 }, () => call(pool));
  assert.deepEqual(await Promise.all(callers.map(({ closed }) => closed)), Array(3).fill("TG_UPSTREAM_FAILED"));
  assert.equal(openOf(pool), 0);
});

/** Holds a connection of HTTP/1.1 that the test uses and releases. */
class Holder implements ConnectWaiter<UpstreamConnection> {
  readonly connected: Promise<UpstreamConnection>;
  #connected: (connection: UpstreamConnection) => void = () => {};

  constructor() {
    this.connected = new Promise((resolve) => {
      this.#connected = resolve;
    });
  }

  onConnection(connection: UpstreamConnection): void {
    this.#connected(connection);
  }

  onConnectFailure(code: ErrorCode, message: string): void {
    assert.fail(`${code}: ${message}`);
  }
}

test("with maxConnections, an unused connection of one version makes room for one of the other", async () => {
  using server = await Server.start();
  const limits = { maxConnections: 1, maxPendingRequests: 1 };
  const settings = { connectTimeout: 5000, idleTimeout: 60_000, maxIdle: undefined, keepAliveDelay: 0 };
  const pool = new Pool({ host: "127.0.0.1", port: server.port, limits }, settings, new Resolver("All", ANYWHERE), {
    onConnected: () => {},
  });
  const plain = new Holder();
  pool.connect(plain);
  pool.release(await plain.connected);
  assert.deepEqual([pool.use.active, pool.use.idle], [0, 1]);

  const caller = new Caller();
  pool.acquire(true, false, caller);
  await until(() => server.streams.length === 1);
  assert.equal(pool.use.active + pool.use.idle, 1);

  // The session is in use: a request for HTTP/1.1 waits until it is not.
  const waiting = new Holder();
  pool.connect(waiting);
  assert.equal(pool.use.waiting, 1);
  server.answer();
  assert.equal(await caller.closed, "answered");
  const connection = await waiting.connected;
  await until(() => pool.use.active + pool.use.idle === 1);

  // And vice versa.
  const last = new Caller();
  pool.acquire(true, false, last);
  assert.equal(pool.use.waiting, 1);
  pool.release(connection);
  await until(() => server.streams.length === 1);
  server.answer();
  assert.equal(await last.closed, "answered");
  pool.close();
});

const TOO_LONG = 3000;
const REFUSED_STREAM = 7;

/** A server that announces a limit of streams for each connection by its number; at 0 it refuses those that come too early. */
async function limiting(limitOf: (connection: number) => number): Promise<RawUpstream> {
  let connections = 0;
  return RawUpstream.listen(async (peer) => {
    const frames = new RawFrames(peer);
    const limit = limitOf(connections++);
    await frames.greet(limit);
    for (;;) {
      const { stream } = await frames.next(HEADERS);
      if (limit === 0) frames.reset(stream, REFUSED_STREAM);
      else frames.respond(stream, {}, END_STREAM);
    }
  });
}

test("a connection on which the server allows no streams does not keep the pool from opening others", async () => {
  await using server = await limiting((connection) => (connection === 0 ? 0 : 100));
  const pool = poolTo(server.port);
  const early = call(pool);
  const callers = Array.from({ length: 30 }, () => call(pool));
  assert.deepEqual(await Promise.all(callers.map(({ closed }) => closed)), Array(30).fill("answered"));
  assert.match(await early.closed, /REFUSED_STREAM/);
  assert.equal(server.connections.length, 2);
  pool.sweep(performance.now() + TOO_LONG);
  await (await server.connection(0)).closed();
  pool.close();
});

test("a connection that later allows no streams finishes what it has, and leaves", async () => {
  using server = await Server.start();
  const pool = poolTo(server.port);
  const early = call(pool);
  await until(() => server.streams.length === 1);
  server.sessions[0]?.settings({ maxConcurrentStreams: 0 });
  await until(() => early.session?.limit === 0);
  const late = call(pool);
  await until(() => server.streams.length === 2);
  assert.notEqual(late.session, early.session);
  pool.sweep(performance.now() + TOO_LONG);
  server.sessions[0]?.settings({ maxConcurrentStreams: 100 });
  await until(() => early.session?.limit === 100);
  assert.equal(early.session?.room, false, "it takes no more requests");
  server.answer();
  assert.deepEqual([await early.closed, await late.closed], ["answered", "answered"]);
  await until(() => openOf(pool) === 1);
  pool.close();
});

test("if the server allows streams on no connection, requests fail, later ones immediately, and few connections are opened", async () => {
  let limit = 0;
  await using server = await limiting(() => limit);
  const pool = poolTo(server.port);
  const callers = Array.from({ length: 30 }, () => call(pool));
  await until(() => pool.sessions.barred === 3);
  pool.sweep(performance.now() + TOO_LONG);
  await Promise.all(callers.map(({ closed }) => closed));
  const reasons = callers.flatMap(({ failure }) => failure ?? []);
  assert.equal(reasons.length, 27, "one request was sent on each connection, before its SETTINGS");
  assert.match(reasons[0] ?? "", /SETTINGS_MAX_CONCURRENT_STREAMS is 0/);
  // The next requests fail without a sweep: one finds out, and the others fail with it.
  const next = Array.from({ length: 5 }, () => call(pool));
  const ends = await Promise.all(next.map(({ closed }) => closed));
  assert.deepEqual(ends.slice(1), Array(4).fill("TG_UPSTREAM_FAILED"));
  assert.equal(await call(pool).closed, "TG_UPSTREAM_FAILED");
  assert.equal(server.connections.length, 4);
  // Once it allows streams again, requests are sent.
  limit = 100;
  pool.sweep(performance.now() + TOO_LONG);
  assert.equal(await call(pool).closed, "answered");
  pool.close();
});

test("with maxConnections, a connection that allows no streams is not replaced again and again", async () => {
  await using server = await limiting(() => 0);
  const settings = { connectTimeout: 5000, idleTimeout: 60_000, maxIdle: undefined, keepAliveDelay: 0 };
  const target = { host: "127.0.0.1", port: server.port, version: "HTTP/2.0", limits: { maxConnections: 1 } } as const;
  const pool = new Pool(target, settings, new Resolver("All", ANYWHERE), { onConnected: () => {} });
  const [first, second] = [call(pool), call(pool)];
  await until(() => pool.sessions.barred === 1);
  assert.match(await first.closed, /REFUSED_STREAM/);
  pool.sweep(performance.now() + TOO_LONG);
  assert.match(await second.closed, /REFUSED_STREAM/);
  assert.equal(await call(pool).closed, "TG_UPSTREAM_FAILED");
  assert.equal(server.connections.length, 2);
  pool.close();
});
