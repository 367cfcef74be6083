import assert from "node:assert/strict";
import { test } from "node:test";
import { closedPort, type RawPeer, RawUpstream, reply } from "../../../test/helpers/raw-peer.ts";
import { untilTurn } from "../../../test/helpers/until.ts";
import { Sweeper } from "../../base/sweeper.ts";
import { SocketBudget } from "../../net/socket-budget.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { UpstreamEvents } from "../connections/upstream.ts";
import type { Wait } from "../connections/wait-queue.ts";
import { SharedLoads } from "../loads/shared-loads.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { PoolLimits } from "../settings/pool-target.ts";
import { Pool, type PoolSettings } from "./pool.ts";
import { Pools } from "./pools.ts";

const SETTINGS: PoolSettings = { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 };

function poolOf(port: number, settings: Partial<PoolSettings> = {}, limits: PoolLimits = {}): Pool {
  const target = { host: "127.0.0.1", port, limits };
  return new Pool(target, { ...SETTINGS, ...settings }, new Resolver("All", ANYWHERE), { onConnected: () => {} });
}

/** A request that asks a pool for a connection. */
class Waiter {
  readonly wait: Wait;
  /** What it got: a connection, or the code and text of the failure. */
  readonly outcome: Promise<UpstreamConnection | string>;
  settled = false;

  constructor(pool: Pool, raw = false) {
    const { promise, resolve } = Promise.withResolvers<UpstreamConnection | string>();
    this.outcome = promise;
    this.wait = pool.connect(
      {
        onConnection: (connection) => {
          this.settled = true;
          resolve(connection);
        },
        onConnectFailure: (code, message) => {
          this.settled = true;
          resolve(`${code} ${message}`);
        },
      },
      raw,
    );
  }

  async connection(): Promise<UpstreamConnection> {
    const outcome = await this.outcome;
    assert.ok(typeof outcome !== "string", String(outcome));
    return outcome;
  }
}

/** Sends a request on a connection and has the server respond; resolves once the pool has the connection back. */
async function exchange(connection: UpstreamConnection, server: RawPeer, fields: readonly string[] = []) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const events: UpstreamEvents = {
    onInformational: () => {},
    onResponse: () => {},
    onResponseBody: () => {},
    onResponseBatch: () => {},
    onResponseEnd: () => resolve(),
    onUpstreamFailure: (message) => reject(new Error(message)),
    onUpstreamDrain: () => {},
    onUpstreamFault: reject,
  };
  connection.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n", "GET", 0, false, events);
  await server.take("\r\n\r\n");
  server.send(reply("", fields));
  await promise;
}

/** Connections to a server, and their other ends, in the order in which they were opened. */
async function openTwo(pool: Pool, upstream: RawUpstream) {
  const first = await new Waiter(pool).connection();
  const second = await new Waiter(pool).connection();
  return { first, second, ends: [await upstream.connection(0), await upstream.connection(1)] as const };
}

test("the most recently used connection is taken first, a closed one never", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port);
  const { first, second, ends } = await openTwo(pool, upstream);
  assert.equal(pool.takeIdle(), undefined);
  await exchange(second, ends[1]);
  await exchange(first, ends[0]);
  assert.deepEqual({ ...pool.use }, { active: 0, idle: 2, connecting: 0, waiting: 0, overflows: 0 });
  assert.equal(pool.takeIdle(), first);
  await exchange(first, ends[0]);
  // Closed, although the pool has not been informed yet: the system reports it in a later turn.
  first.destroy();
  assert.equal(pool.takeIdle(), second);
  assert.equal(pool.takeIdle(), undefined);
  second.destroy();
  await untilTurn(() => pool.use.active === 0, "the close of both");
});

test("an idle connection that the server closes leaves the pool", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port);
  const { first, second, ends } = await openTwo(pool, upstream);
  await exchange(first, ends[0]);
  await exchange(second, ends[1]);
  ends[1].end();
  await untilTurn(() => pool.use.idle === 1, "the close");
  assert.equal(pool.use.active, 0);
  assert.equal(pool.takeIdle(), first);
  first.destroy();
});

test("unused connections beyond maxIdle are closed when they are released", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, { maxIdle: 1 });
  const { first, second, ends } = await openTwo(pool, upstream);
  await exchange(first, ends[0]);
  await exchange(second, ends[1]);
  assert.equal(await ends[1].closed(), "end");
  await untilTurn(() => pool.use.active === 0, "the close");
  assert.equal(pool.takeIdle(), first);
  first.destroy();
});

test("idleTimeout counts from the first sweep after the last use", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, { idleTimeout: 1000 });
  const { first, second, ends } = await openTwo(pool, upstream);
  await exchange(first, ends[0]);
  await exchange(second, ends[1]);
  pool.sweep(5000);
  pool.sweep(6000);
  assert.equal(pool.use.idle, 2, "not longer than the timeout so far");
  assert.equal(pool.takeIdle(), second);
  await exchange(second, ends[1]);
  pool.sweep(6001);
  assert.equal(await ends[0].closed(), "end");
  assert.equal(pool.use.idle, 1, "the one that was used meanwhile stays");
  pool.sweep(7001);
  assert.equal(pool.use.idle, 1);
  pool.sweep(7002);
  assert.equal(await ends[1].closed(), "end");
  await untilTurn(() => pool.use.active === 0, "the close");
});

test("connections that are being opened count toward maxConnections; waiting requests get the first that becomes free", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, {}, { maxConnections: 1, maxPendingRequests: 1 });
  const [first, second] = [new Waiter(pool), new Waiter(pool)];
  assert.deepEqual([pool.use.connecting, pool.use.waiting, pool.hasRoom, pool.crowded], [1, 1, false, true]);
  assert.equal(await new Waiter(pool).outcome, "TG_POOL_FULL no connection is free and 1 requests wait");
  assert.equal(pool.use.overflows, 1);
  const connection = await first.connection();
  await exchange(connection, await upstream.connection());
  assert.equal(await second.connection(), connection);
  assert.equal(upstream.connections.length, 1);
  assert.deepEqual({ ...pool.use }, { active: 1, idle: 0, connecting: 0, waiting: 0, overflows: 1 });
  connection.destroy();
});

test("a connection that closes, or cannot be opened, makes room for a waiting request", async () => {
  await using upstream = await RawUpstream.listen();
  const limits = { maxConnections: 1 };
  const pool = poolOf(upstream.port, {}, limits);
  const first = await new Waiter(pool).connection();
  const second = new Waiter(pool);
  first.destroy();
  const next = await second.connection();
  assert.notEqual(next, first);
  next.destroy();

  const nowhere = poolOf(await closedPort(), {}, limits);
  const outcomes = await Promise.all([new Waiter(nowhere), new Waiter(nowhere)].map(({ outcome }) => outcome));
  for (const outcome of outcomes) assert.match(String(outcome), /^TG_UPSTREAM_FAILED connect ECONNREFUSED/);
});

test("bytes without HTTP get a new connection: one that has served is closed for it", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, {}, { maxConnections: 1 });
  const first = await new Waiter(pool).connection();
  const raw = new Waiter(pool, true);
  await exchange(first, await upstream.connection());
  const second = await raw.connection();
  assert.notEqual(second, first);
  assert.equal(await (await upstream.connection()).closed(), "end");
  await exchange(second, await upstream.connection(1));
  // An unused connection is closed at once.
  const third = await new Waiter(pool, true).connection();
  assert.notEqual(third, second);
  assert.equal(await (await upstream.connection(1)).closed(), "end");
  third.destroy();
});

test("pools of several threads, and requests for HTTP/1.1 and HTTP/2, share the limit of waiting requests", async () => {
  await using upstream = await RawUpstream.listen();
  const memory = SharedLoads.memoryFor(2);
  const pools = [0, 1].map((index) => {
    const pool = poolOf(upstream.port, {}, { maxConnections: 2, maxPendingRequests: 1 });
    pool.shareLimits(new SharedLoads(memory, index));
    return pool;
  });
  const [one, other] = pools as [Pool, Pool];
  const connections = await Promise.all(pools.map((pool) => new Waiter(pool).connection()));
  const waiting = new Waiter(one);
  const full = "TG_POOL_FULL no connection is free and 1 requests wait";
  assert.equal(await new Waiter(other).outcome, full);
  for (const pool of pools) {
    const { promise, resolve } = Promise.withResolvers<string>();
    pool.acquireSession({
      onConnection: () => resolve("a connection"),
      onSession: () => resolve("a session"),
      onConnectFailure: (code, message) => resolve(`${code} ${message}`),
    });
    assert.equal(await promise, full);
  }
  waiting.wait.cancel();
  const next = new Waiter(other);
  connections[1]?.destroy();
  connections.push(await next.connection());
  for (const connection of connections) connection.destroy();
});

test("a cancelled request gets no event, and its place is free again", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, {}, { maxConnections: 1 });
  const connecting = new Waiter(pool);
  const [leaving, admitted, staying] = [new Waiter(pool), new Waiter(pool), new Waiter(pool)];
  leaving.wait.cancel();
  connecting.wait.cancel();
  assert.deepEqual([pool.use.connecting, pool.use.waiting], [1, 1], "the next one connects at once");
  // Its wait has become an attempt to connect, which is cancelled as well.
  admitted.wait.cancel();
  assert.deepEqual([pool.use.connecting, pool.use.waiting], [1, 0]);
  const connection = await staying.connection();
  for (const { settled } of [connecting, leaving, admitted]) assert.equal(settled, false);
  assert.deepEqual({ ...pool.use }, { active: 1, idle: 0, connecting: 0, waiting: 0, overflows: 0 });
  connection.destroy();
});

test("a wait for a free connection, and for one that is being opened, ends after connectTimeout", async (t) => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port, { connectTimeout: 1000 }, { maxConnections: 1 });
  const busy = await new Waiter(pool).connection();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const waiting = new Waiter(pool);
  t.mock.timers.tick(999);
  assert.equal(waiting.settled, false);
  t.mock.timers.tick(1);
  assert.equal(await waiting.outcome, "TG_UPSTREAM_TIMEOUT no connection was free in time");
  busy.destroy();
  await untilTurn(() => pool.hasRoom, "the close");
  const connecting = new Waiter(pool);
  t.mock.timers.tick(1000);
  assert.equal(await connecting.outcome, "TG_UPSTREAM_TIMEOUT connect timeout");
  assert.equal(pool.use.connecting, 0);
});

test("a closed pool closes what is unused at once, and what is in use when its exchange ends", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolOf(upstream.port);
  const { first, second, ends } = await openTwo(pool, upstream);
  await exchange(first, ends[0]);
  pool.close();
  assert.equal(await ends[0].closed(), "end");
  await exchange(second, ends[1]);
  assert.equal(await ends[1].closed(), "end");
  await untilTurn(() => pool.use.active === 0, "the close of both");
  assert.equal(pool.use.idle, 0);
});

test("connections of all pools together stay within the budget; those that close, fail or are cancelled make room", async () => {
  await using server = await RawUpstream.listen();
  let refused = 0;
  const budget = new SocketBudget(1, () => refused++);
  const make = (port: number): Pool =>
    new Pool({ host: "127.0.0.1", port }, SETTINGS, new Resolver("All", ANYWHERE), { onConnected: () => {} }, budget);
  const [first, second, broken] = [make(server.port), make(server.port), make(await closedPort())];
  const connection = await new Waiter(first).connection();
  assert.match(String(await new Waiter(second).outcome), /^TG_POOL_FULL the limit of open files/);
  assert.equal(refused, 1);
  connection.destroy();
  await untilTurn(() => first.use.active === 0, "the connection to close");
  assert.match(String(await new Waiter(broken).outcome), /^TG_UPSTREAM_FAILED /);
  new Waiter(second).wait.cancel();
  (await new Waiter(second).connection()).destroy();
  await untilTurn(() => second.use.active === 0, "the connection to close");
  assert.deepEqual([budget.used.upstream, refused], [0, 1]);
});

test("requests whose backend's name is being looked up take no place in the budget", async () => {
  await using server = await RawUpstream.listen();
  const budget = new SocketBudget(1);
  const silent = {
    lookup: () => {},
    now: () => performance.now(),
    later: () => {},
    idly: () => () => {},
    ttl: () => {},
    srv: () => {},
    reaches: () => true,
  };
  const observer = { onConnected: () => {} };
  const named = new Pool(
    { host: "a.test", port: 1 },
    SETTINGS,
    new Resolver("All", ANYWHERE, undefined, silent),
    observer,
    budget,
  );
  const waiting = new Waiter(named);
  const pool = new Pool(
    { host: "127.0.0.1", port: server.port },
    SETTINGS,
    new Resolver("All", ANYWHERE),
    observer,
    budget,
  );
  (await new Waiter(pool).connection()).destroy();
  waiting.wait.cancel();
  await untilTurn(() => pool.use.active === 0, "the connection to close");
  assert.deepEqual(budget.used, { client: 0, upstream: 0, udp: 0 });
});

test("idle connections of one pool give their place in the budget to those of others, connections in use do not", async () => {
  await using server = await RawUpstream.listen();
  await using other = await RawUpstream.listen();
  const budget = new SocketBudget(3);
  const pools = new Pools(SETTINGS, new Resolver("All", ANYWHERE), { onConnected: () => {} }, new Sweeper(), budget);
  const first = pools.acquire({ host: "127.0.0.1", port: server.port });
  const second = pools.acquire({ host: "127.0.0.1", port: other.port });
  const used = [await new Waiter(first).connection(), await new Waiter(first).connection()];
  assert.match(String(await new Waiter(second).outcome), /^TG_POOL_FULL /);
  for (const connection of used) first.release(connection);
  const connection = await new Waiter(second).connection();
  assert.deepEqual([used.map(({ usable }) => usable), first.use.idle], [[false, true], 1]);
  for (const each of [...used, connection]) each.destroy();
  await untilTurn(() => budget.used.upstream === 0, "all to close");
});

test("a session whose server has not sent its SETTINGS yet is not idle: requests wait for them", async () => {
  await using server = await RawUpstream.listen();
  await using other = await RawUpstream.listen();
  const budget = new SocketBudget(1);
  const pools = new Pools(SETTINGS, new Resolver("All", ANYWHERE), { onConnected: () => {} }, new Sweeper(), budget);
  const pool = pools.acquire({ host: "127.0.0.1", port: server.port, version: "HTTP/2.0" });
  const { promise, resolve } = Promise.withResolvers<string>();
  pool.acquire(true, false, {
    needsSettings: true,
    onSession: () => resolve("session"),
    onConnection: () => resolve("connection"),
    onConnectFailure: resolve,
  });
  const peer = await server.connection();
  await peer.take("PRI * HTTP/2.0");
  const elsewhere = new Waiter(pools.acquire({ host: "127.0.0.1", port: other.port }));
  assert.match(String(await elsewhere.outcome), /^TG_POOL_FULL /);
  // Empty SETTINGS.
  peer.send(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
  assert.equal(await promise, "session");
  pool.close();
  await untilTurn(() => budget.used.upstream === 0, "the connection to close");
});

test("maxIdle 0: sessions whose SETTINGS are awaited stay for the requests that wait, and no longer", async () => {
  await using server = await RawUpstream.listen();
  const target = { host: "127.0.0.1", port: server.port, version: "HTTP/2.0" } as const;
  const pool = new Pool(target, { ...SETTINGS, maxIdle: 0 }, new Resolver("All", ANYWHERE), { onConnected: () => {} });
  const outcomes: string[] = [];
  /** Asks for a session, but does not use it. */
  const ask = () =>
    pool.acquire(true, false, {
      needsSettings: true,
      onSession: () => outcomes.push("session"),
      onConnection: () => outcomes.push("connection"),
      onConnectFailure: (code, message) => outcomes.push(`${code} ${message}`),
    });
  ask();
  const wait = ask();
  const peer = await server.connection();
  await peer.take("PRI * HTTP/2.0");
  wait?.cancel();
  peer.send(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
  await untilTurn(() => pool.use.active + pool.use.idle === 0, "the connection to close");
  assert.deepEqual(outcomes, ["session"]);
});
