/** The addresses of a name are endpoints, with health and connections of their own. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { suite, test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { DnsSettings } from "../../../src/upstream/discovery/dns.ts";
import type { System } from "../../../src/upstream/resolve/resolver.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, statusOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const GET = "GET / HTTP/1.1\r\nHost: client.test\r\n\r\n";
const FAST: DnsSettings = { minTtl: ms(20) };

/** Servers on one port of 127.0.0.1, 127.0.0.2 and so on, each of which responds with its address and the Host that it got. */
class Servers implements AsyncDisposable {
  readonly port: number;
  /** Addresses of the name `app.test`. */
  names: readonly string[];
  /** What the servers wait for before they respond. */
  held: Promise<void> = Promise.resolve();
  readonly #servers: readonly Server[];

  private constructor(servers: readonly Server[], port: number) {
    this.#servers = servers;
    this.port = port;
    this.names = servers.map((_, i) => `127.0.0.${i + 1}`);
    for (const server of servers)
      server.on("request", (request, response) => {
        void this.held.then(() => response.end(`${request.socket.localAddress} ${request.headers.host}`));
      });
  }

  static async start(count: number, make: () => Server = createServer): Promise<Servers> {
    for (;;) {
      const servers = Array.from({ length: count }, () => make());
      let port = 0;
      try {
        for (const [i, server] of servers.entries()) {
          await new Promise<void>((resolve, reject) => {
            server.once("error", reject).listen(port, `127.0.0.${i + 1}`, resolve);
          });
          ({ port } = server.address() as AddressInfo);
        }
        return new Servers(servers, port);
      } catch (error) {
        // Another test has the port at one of the addresses.
        for (const server of servers) server.close();
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      }
    }
  }

  readonly lookup: System["lookup"] = (host, _options, callback) => {
    const found = host === "app.test" ? this.names.map((address) => ({ address, family: 4 })) : [];
    setImmediate(() => callback(found.length === 0 ? new Error(`not found: ${host}`) : null, found));
  };

  /** A gateway with a route to `app.test`. */
  gateway(dns: DnsSettings = FAST, backendPolicies: PolicySet = {}): Promise<TestPlane> {
    const target = { type: "static", host: "app.test", port: this.port, dns } as const;
    return TestPlane.start([{ target, backendPolicies }], { names: { lookup: this.lookup } });
  }

  async stop(index: number): Promise<void> {
    const server = this.#servers[index];
    await new Promise((resolve) => {
      server?.close(resolve);
      server?.closeAllConnections();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((_, i) => this.stop(i)));
  }
}

/** How many of these requests each server got, by the last number of its address. */
async function spread(plane: TestPlane, count: number): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const { start, body } = await RawPeer.ask(plane.port, GET);
    const from = start.includes("200") ? (body.split(" ")[0]?.at(-1) ?? "") : start;
    found[from] = (found[from] ?? 0) + 1;
  }
  return found;
}

function endpoints(plane: TestPlane): readonly string[] {
  return plane.endpoints
    .stats()
    .map(({ target }) => target.replace(/:\d+$/, ""))
    .sort();
}

/** Sends requests until the endpoints are these. */
async function untilEndpoints(plane: TestPlane, expected: readonly string[]): Promise<void> {
  await until(async () => {
    await spread(plane, 1);
    return endpoints(plane).join() === expected.join();
  }, `the endpoints ${expected.join()}`);
}

suite("a name with several addresses", () => {
  test("each gets its part; one that is dead is evicted by itself, and its requests go to the others", async () => {
    await using servers = await Servers.start(3);
    const eviction = { duration: ms(3_600_000), consecutiveFailures: 1 };
    await using plane = await servers.gateway(FAST, { health: { eviction } });
    await untilEndpoints(plane, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    const all = await spread(plane, 100);
    assert.deepEqual(Object.keys(all).sort(), ["1", "2", "3"]);
    const { body } = await RawPeer.ask(plane.port, GET);
    assert.equal(body.split(" ")[1], `app.test:${servers.port}`, "the backend sees the name, not the address");
    await servers.stop(1);
    const rest = await spread(plane, 60);
    assert.deepEqual(Object.keys(rest).sort(), ["1", "3"]);
    const evicted = plane.endpoints.stats().filter(({ evictedMs }) => evictedMs !== null);
    assert.deepEqual(
      evicted.map(({ target }) => target),
      [`127.0.0.2:${servers.port}`],
    );
  });

  test("an address that leaves takes no new requests, finishes those that it has, and its connections close", async () => {
    await using servers = await Servers.start(2);
    servers.names = ["127.0.0.1"];
    await using plane = await servers.gateway();
    await untilEndpoints(plane, ["127.0.0.1"]);
    const { promise, resolve } = Promise.withResolvers<void>();
    servers.held = promise;
    const slow = RawPeer.ask(plane.port, GET);
    const active = (): number => plane.endpoints.stats().reduce((sum, { pending }) => sum + pending, 0);
    await until(() => active() === 1, "the request to be sent");
    servers.names = ["127.0.0.2"];
    await until(() => endpoints(plane).join() === "127.0.0.2", "the new address");
    servers.held = Promise.resolve();
    assert.deepEqual(await spread(plane, 20), { "2": 20 });
    resolve();
    assert.match((await slow).body, /^127\.0\.0\.1 /);
    // A lookup that fails changes nothing.
    servers.names = [];
    assert.deepEqual(await spread(plane, 20), { "2": 20 });
    servers.names = ["127.0.0.1", "127.0.0.2"];
    await untilEndpoints(plane, ["127.0.0.1", "127.0.0.2"]);
    assert.deepEqual(Object.keys(await spread(plane, 40)).sort(), ["1", "2"]);
    await plane.configure(undefined);
    assert.deepEqual(plane.endpoints.stats(), []);
  });

  test("a name that does not resolve fails its requests, until it does", async () => {
    await using servers = await Servers.start(1);
    servers.names = [];
    await using plane = await servers.gateway();
    const failed = await plane.trace(() => RawPeer.ask(plane.port, GET));
    assert.match(JSON.stringify(failed.at(-1)), /DNS resolution which failed: not found: app\.test/);
    assert.deepEqual(endpoints(plane), ["app.test"]);
    servers.names = ["127.0.0.1"];
    await untilEndpoints(plane, ["127.0.0.1"]);
    assert.equal(statusOf(await RawPeer.ask(plane.port, GET)), 200);
  });

  test("mode first: the name is one endpoint", async () => {
    await using servers = await Servers.start(2);
    await using plane = await servers.gateway({ mode: "first" });
    await spread(plane, 10);
    assert.deepEqual(endpoints(plane), ["app.test"]);
  });

  test("SRV records: the servers with their ports, the next priority once those of the first fail; requests have the domain", async () => {
    await using servers = await Servers.start(2);
    const lookup: System["lookup"] = (host, _options, callback) =>
      setImmediate(() => callback(null, [{ address: host === "one.test" ? "127.0.0.1" : "127.0.0.2", family: 4 }]));
    const record = { port: servers.port, weight: 1 };
    const srv: System["srv"] = (_name, callback) =>
      setImmediate(() =>
        callback(null, [
          { ...record, name: "two.test", priority: 20 },
          { ...record, name: "one.test", priority: 10 },
        ]),
      );
    const target = { type: "static", host: "app.test", port: 0, srv: "_http._tcp.app.test" } as const;
    await using plane = await TestPlane.start([{ target }], { names: { lookup, srv } });
    // Its port is not known yet.
    assert.match((await RawPeer.ask(plane.port, GET)).body, / app\.test$/);
    await untilEndpoints(plane, ["127.0.0.1", "127.0.0.2"]);
    assert.deepEqual(await spread(plane, 10), { "1": 10 });
    assert.match((await RawPeer.ask(plane.port, GET)).body, new RegExp(` app.test:${servers.port}$`));
    await servers.stop(0);
    assert.deepEqual(await spread(plane, 10), { "2": 10 });
  });

  test("TLS verifies the name, whatever the address", { skip: noOpenssl }, async () => {
    using ca = new TestCa();
    const { cert, key } = ca.issue("app.test");
    const names: (string | false | null)[] = [];
    await using servers = await Servers.start(2, () =>
      createTlsServer({ cert, key }).on("secureConnection", ({ servername }) => names.push(servername)),
    );
    await using plane = await servers.gateway(FAST, {
      backendTLS: { root: ca.cert, insecure: false, insecureHost: false },
    });
    await untilEndpoints(plane, ["127.0.0.1", "127.0.0.2"]);
    assert.deepEqual(Object.keys(await spread(plane, 40)).sort(), ["1", "2"]);
    assert.deepEqual([...new Set(names)], ["app.test"]);
    await using wrong = await TestPlane.start(
      [
        {
          target: { type: "static", host: "other.test", port: servers.port },
          backendPolicies: { backendTLS: { root: ca.cert, insecure: false, insecureHost: false } },
        },
      ],
      { names: { lookup: (_host, options, callback) => servers.lookup("app.test", options, callback) } },
    );
    for (let i = 0; i < 5; i++) assert.equal(statusOf(await RawPeer.ask(wrong.port, GET)), 503);
  });
});
