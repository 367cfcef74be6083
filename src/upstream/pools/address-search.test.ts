import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterEach, test } from "node:test";
import { closedPort, RawUpstream } from "../../../test/helpers/raw-peer.ts";
import { unreachable } from "../../../test/helpers/unreachable.ts";
import { ANYWHERE } from "../../net/testing/egress.ts";
import type { ConnectTimes } from "../connections/connect-attempt.ts";
import type { UpstreamConnection } from "../connections/connection.ts";
import type { LookupFamily } from "../discovery/dns.ts";
import { Resolver } from "../resolve/resolver.ts";
import type { HostAddress } from "../settings/pool-target.ts";
import { Pool } from "./pool.ts";

/** Closed after each test, even one that fails. */
const opened: (Pool | Server)[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});

/** A pool to `name.test`, which has these addresses. */
function poolTo(
  port: number,
  addresses: readonly string[],
  connectTimeout = 10_000,
  family: LookupFamily = "All",
  target: Partial<HostAddress> = {},
): Pool {
  const resolver = new Resolver(family, ANYWHERE, undefined, {
    lookup: (_host, { order }, done) => {
      const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
      if (order === "ipv4first") found.sort((a, b) => a.family - b.family);
      done(null, found);
    },
    now: () => performance.now(),
    later: () => {},
    idly: () => () => {},
    ttl: () => {},
    srv: () => {},
    reaches: () => true,
  });
  const settings = { connectTimeout, idleTimeout: 60_000, maxIdle: undefined, keepAliveDelay: 0 };
  const pool = new Pool({ host: "name.test", port, ...target }, settings, resolver, { onConnected: () => {} });
  opened.push(pool);
  return pool;
}

/** How long each step of a new connection took. */
function timesOf(pool: Pool): Promise<ConnectTimes> {
  return new Promise((resolve, reject) => {
    pool.connect({
      onConnection(connection: UpstreamConnection) {
        resolve(connection.times);
        connection.destroy();
      },
      onConnectFailure: (_code, message) => reject(new Error(message)),
    });
  });
}

/** The address that a new connection reached, or the error. */
function connect(pool: Pool): Promise<string> {
  return new Promise((resolve) => {
    pool.connect({
      onConnection(connection: UpstreamConnection) {
        resolve(`${connection.peer?.address}:${connection.peer?.port}`);
        connection.destroy();
      },
      onConnectFailure: (code, message) => resolve(`${code} ${message}`),
    });
  });
}

async function listen(host: string, port: number): Promise<Server> {
  const server = createServer((socket) => socket.resume()).listen(port, host);
  opened.push(server);
  await once(server, "listening");
  return server;
}

test("an address that does not respond leaves time for the next one", async () => {
  await using silent = await unreachable("127.0.0.2");
  await listen("127.0.0.1", silent.port);
  const pool = poolTo(silent.port, ["127.0.0.2", "127.0.0.1"], 1000);
  assert.equal(await connect(pool), `127.0.0.1:${silent.port}`);
});

test("an address that refuses the connection is followed by the next one", async () => {
  await using upstream = await RawUpstream.listen();
  const pool = poolTo(upstream.port, ["127.0.0.2", "127.0.0.3", "127.0.0.1"]);
  assert.equal(await connect(pool), `127.0.0.1:${upstream.port}`);
});

test("when all addresses refuse the connection, the error is that of the last one", async () => {
  const port = await closedPort();
  const pool = poolTo(port, ["127.0.0.2", "127.0.0.1"]);
  assert.equal(await connect(pool), `TG_UPSTREAM_FAILED connect ECONNREFUSED 127.0.0.1:${port}`);
  assert.equal(await connect(pool), `TG_UPSTREAM_FAILED connect ECONNREFUSED 127.0.0.2:${port}`);
  assert.equal(pool.use.connecting, 0);
});

test("when no address responds, the connect timeout ends the search", async () => {
  await using silent = await unreachable("127.0.0.2");
  const pool = poolTo(silent.port, ["127.0.0.2", "127.0.0.2"], 100);
  assert.equal(await connect(pool), "TG_UPSTREAM_TIMEOUT connect timeout");
  assert.equal(pool.use.connecting, 0);
});

test("connecting to a name begins with a lookup, unless its addresses are known", async () => {
  await using upstream = await RawUpstream.listen();
  const { port } = upstream;
  const stepsTo = async (target: Partial<HostAddress>): Promise<string[]> =>
    Object.keys(await timesOf(poolTo(port, ["127.0.0.1"], undefined, "All", target)));
  assert.deepEqual(await stepsTo({}), ["dns", "connect"]);
  assert.deepEqual(await stepsTo({ at: ["127.0.0.1"] }), ["connect"]);
  assert.deepEqual(await stepsTo({ host: "127.0.0.1" }), ["connect"]);
});

test("a name without addresses fails", async () => {
  assert.equal(await connect(poolTo(1, [])), "TG_DNS_FAILED no address found for name.test");
});

test("the addresses of a name take turns as the first one", async () => {
  const first = await listen("127.0.0.1", 0);
  const { port } = first.address() as { port: number };
  await listen("127.0.0.2", port);
  const pool = poolTo(port, ["127.0.0.1", "127.0.0.2"]);
  const reached = [await connect(pool), await connect(pool), await connect(pool)];
  assert.deepEqual(reached, [`127.0.0.1:${port}`, `127.0.0.2:${port}`, `127.0.0.1:${port}`]);
});

test("V4Preferred: IPv6 is tried only after IPv4, at every connection", async (t) => {
  const six = await listen("::1", 0).catch(() => undefined);
  if (six === undefined) {
    t.skip("no IPv6 here");
    return;
  }
  const { port } = six.address() as { port: number };
  const four = await listen("127.0.0.1", port);
  const pool = poolTo(port, ["::1", "127.0.0.1"], 10_000, "V4Preferred");
  for (let i = 0; i < 3; i++) assert.equal(await connect(pool), `127.0.0.1:${port}`);
  // The target may say so too.
  const own = poolTo(port, ["::1", "127.0.0.1"], 10_000, "All", { dns: { family: "V4Preferred" } });
  for (let i = 0; i < 3; i++) assert.equal(await connect(own), `127.0.0.1:${port}`);
  four.close();
  await once(four, "close");
  const again = poolTo(port, ["::1", "127.0.0.1"], 10_000, "V4Preferred");
  assert.equal(await connect(again), `::1:${port}`);
});
