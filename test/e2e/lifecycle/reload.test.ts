import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { Load } from "../admin/load.ts";
import { admin, call, messageOf, rawClient, traceOf, Upstream } from "../trace/support.ts";

suite("reload", () => {
  let upstream: Upstream;

  before(async () => {
    upstream = await Upstream.start();
  });
  after(() => upstream.close());

  const config = (names: readonly string[]): object => ({ config: { workerThreads: 2 }, ...serving(names) });
  const serving = (names: readonly string[]): object => ({
    binds: [
      {
        port: 0,
        listeners: [
          {
            protocol: "HTTP",
            routes: [
              ...names.map((name) => ({
                name,
                matches: [{ path: { exact: `/${name}` } }],
                policies: { directResponse: { status: 200, body: name } },
              })),
              { name: "rest", backends: [{ host: upstream.address }] },
            ],
          },
        ],
      },
    ],
  });

  test("under load no request is lost, and both workers serve the new route", async () => {
    await using gateway = await TestGateway.start(config([]));
    const port = gateway.port();
    await using load = await Load.start(port, 32);
    for (let round = 1; round <= 3; round++) {
      const names = Array.from({ length: round * 100 }, (_, index) => `new${index}`);
      assert.equal(await gateway.reconfigure(config(names)), "applied");
      assert.equal(gateway.port(), port, "the port stays");
      await load.answered(500);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => call(port, { path: `/new${round * 100 - 1}` })),
      );
      for (const { body } of answers) assert.equal(body.toString(), `new${round * 100 - 1}`);
    }
    assert.deepEqual(load.statuses, new Set([200]));
    assert.equal(load.broken, 0);
    assert.equal((await admin(gateway).configStatus()).generation, 4);
  });

  test("a rejected configuration changes nothing", async () => {
    await using gateway = await TestGateway.start(config(["old"]));
    await using load = await Load.start(gateway.port(), 8);
    assert.equal(await gateway.reconfigure(config(["old", "old"])), "rejected");
    await load.answered(100);
    assert.equal((await call(gateway.port(), { path: "/old" })).body.toString(), "old");
    assert.deepEqual(load.statuses, new Set([200]));
    const { synchronized, lastError } = await admin(gateway).configStatus();
    assert.equal(synchronized, false);
    assert.ok(lastError !== null);
    assert.equal(await gateway.reconfigure(config(["newer"])), "applied");
    assert.equal((await admin(gateway).configStatus()).synchronized, true);
  });

  test("a file that is empty for a moment, as while it is written, closes no port", async () => {
    await using gateway = await TestGateway.start(config(["kept"]));
    await using load = await Load.start(gateway.port(), 4);
    assert.equal(await gateway.reconfigure(""), "rejected");
    await load.answered(100);
    assert.equal((await call(gateway.port(), { path: "/kept" })).body.toString(), "kept");
    assert.equal(load.broken, 0);
    const { lastError } = await admin(gateway).configStatus();
    assert.match(lastError?.message ?? "", /is empty/);
  });

  test("a configuration that deliberately serves nothing closes the ports", async () => {
    await using gateway = await TestGateway.start(config([]));
    const port = gateway.port();
    const client = await rawClient(port, "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    await once(client, "data");
    const closed = once(client.resume(), "close");
    assert.equal(await gateway.reconfigure("{}"), "applied");
    await closed;
    await assert.rejects(call(port, {}), { code: "ECONNREFUSED" });
    assert.equal((await admin(gateway).configStatus()).synchronized, true);
  });

  test("connections to backends that stay are kept; those to removed backends are closed", async () => {
    const other = await Upstream.start();
    await using gateway = await LocalGateway.start(serving([]));
    const send = () => call(gateway.port(), { path: "/x" });
    await send();
    const before = upstream.connections;
    await gateway.reconfigure(serving(["more"]));
    await send();
    assert.equal(upstream.connections, before, "the pooled connection was used again");

    const hanging = upstream.hang("/pooled");
    const pending = call(gateway.port(), { path: "/pooled" });
    const { request, response } = await hanging;
    const closed = once(request.socket, "close");
    await gateway.reconfigure(proxyTo(other.address));
    assert.equal((await send()).status, 200);
    assert.equal(other.connections, 1);
    response.end("finished on the old configuration");
    assert.equal((await pending).body.toString(), "finished on the old configuration");
    await closed;
    await other.close();
  });

  test("a watcher that waits during a reload traces a request on the new routes", async () => {
    await using gateway = await TestGateway.start(config([]));
    const events = await traceOf(gateway, async () => {
      await gateway.reconfigure(config(["fresh"]));
      await call(gateway.port(), { path: "/fresh" });
    });
    assert.match(messageOf(events, "routeSelection").selectedRoute ?? "", /\/fresh$/);
  });

  test("a keep-alive connection sees the new configuration with its next request", async () => {
    await using gateway = await LocalGateway.start(serving([]));
    const client = await rawClient(gateway.port(), "GET /late HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const [first] = (await once(client, "data")) as [Buffer];
    assert.match(first.toString(), /hello$/);
    await gateway.reconfigure(serving(["late"]));
    client.write("GET /late HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const [second] = (await once(client, "data")) as [Buffer];
    assert.match(second.toString(), /late$/);
    client.destroy();
  });
});
