import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import { connect } from "node:tls";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, statusOf } from "../../helpers/raw-peer.ts";
import { logged } from "../tls/support.ts";
import { call, Upstream } from "../trace/support.ts";

const ROUND = "loop detected";
const OWN = "is a port that this gateway itself listens on";
const DNS_FAILED = "backends required DNS resolution which failed";

suite("dynamic backends with a target expression", { concurrency: 1 }, () => {
  let upstream: Upstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/host", (request, response) => response.end(request.headers.host));
    const backend = (path: string, dynamic: object): object => ({
      name: path.slice(1),
      matches: [{ path: { pathPrefix: path } }],
      backends: [{ dynamic }],
    });
    gateway = await TestGateway.start({
      config: { workerThreads: 1 },
      backends: [{ name: "own", dynamic: { target: 'request.headers["x-target"]' } }],
      binds: [
        {
          port: 0,
          listeners: [
            {
              routes: [
                backend("/port", { target: '"127.0.0.1:" + request.headers["x-port"]' }),
                backend("/text", { target: 'request.headers["x-target"]' }),
                backend("/number", { target: "dyn(80)" }),
                backend("/authority", {}),
                { name: "named", backends: [{ backend: "/own" }] },
              ],
            },
          ],
        },
      ],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const get = (path: string, headers: Record<string, string>) => call(gateway.port(), { path, headers });
  const text = async (path: string, headers: Record<string, string>): Promise<[number, string]> => {
    const { status, body } = await get(path, headers);
    return [status, body.toString()];
  };

  test("the expression chooses the server", async () => {
    assert.deepEqual(await text("/port", { "x-port": String(upstream.port) }), [200, "hello"]);
    assert.deepEqual(await text("/text", { "x-target": upstream.address }), [200, "hello"]);
    assert.deepEqual(await text("/", { "x-target": upstream.address }), [200, "hello"]);
    await logged(gateway, { scope: "request", route: "default/port", endpoint: upstream.address });
  });

  test("if the target is a name, the backend gets it as Host", async () => {
    const target = `localhost:${upstream.port}`;
    assert.deepEqual(await text("/host", { "x-target": target }), [200, target]);
    assert.deepEqual(await text("/host", { "x-target": upstream.address }), [200, "a.test"]);
  });

  test("an expression that fails, or a value that is not an address, is 503", async () => {
    assert.deepEqual(await text("/port", {}), [503, DNS_FAILED]);
    assert.deepEqual(await text("/number", {}), [503, DNS_FAILED]);
    const bad = [
      "",
      "127.0.0.1",
      "127.0.0.1:0",
      "127.0.0.1:70000",
      "unix:/tmp/x",
      "user@127.0.0.1:80",
      "a/b:80",
      "[::x]:1",
    ];
    for (const target of bad) {
      const [status, body] = await text("/text", { "x-target": target });
      assert.equal(status, 503, target);
      assert.ok(body === DNS_FAILED || body === "no healthy backends", body);
    }
    await logged(gateway, {
      scope: "request",
      route: "default/number",
      reason: "NoHealthyBackend",
      error: `${DNS_FAILED}: the target's value is not host:port, at binds[0].listeners[0].routes[2].backends[0]`,
    });
  });

  test("without an expression it is the authority of the request", async () => {
    assert.deepEqual(await text("/authority", { host: upstream.address }), [200, "hello"]);
  });
});

test("TCP routes: the expression reads the connection", async () => {
  await using upstream = await RawUpstream.listen();
  const target = `source.address == "127.0.0.1" ? "127.0.0.1:${upstream.port}" : "nowhere"`;
  const listener = (name: string, port: number, expression: string): object => ({
    port,
    listeners: [{ name, protocol: "TCP", tcpRoutes: [{ name, backends: [{ dynamic: { target: expression } }] }] }],
  });
  await using gateway = await LocalGateway.start({ binds: [listener("good", 0, target)] });
  const client = await RawPeer.connect(gateway.port());
  const backend = await upstream.connection();
  client.send("ping");
  await backend.take("ping");
  backend.end();
  client.end();
  await gateway.reconfigure({ binds: [listener("bad", 0, '"nowhere"')] });
  const refused = await RawPeer.connect(gateway.port());
  await refused.closed();
  await logged(gateway, {
    scope: "request",
    listener: "bad",
    error: `${DNS_FAILED}: "nowhere" is not host:port, at binds[0].listeners[0].tcpRoutes[0].backends[0]`,
    reason: "NoHealthyBackend",
  });
});

test("a target that leads back to the client's own port is rejected", async () => {
  const config = (listener: object): object => ({ binds: [{ port: 0, listeners: [listener] }] });
  await using gateway = await LocalGateway.start(config({ name: "http", routes: [{ backends: [{ dynamic: {} }] }] }));
  const port = gateway.port();
  for (const host of ["localhost", "127.0.0.1", "127.0.0.2", "[::1]"])
    assert.equal((await call(port, { headers: { host: `${host}:${port}` } })).status, 508, host);
  await logged(gateway, { scope: "request", listener: "http", error: `${ROUND}: 127.0.0.2:${port} ${OWN}` });

  const tcpRoutes = [{ hostnames: ["localhost"], backends: [{ dynamic: {} }] }];
  await gateway.reconfigure(config({ name: "tls", protocol: "TLS", tcpRoutes }));
  // The server name of the handshake, with the port that the client connected to.
  const client = connect({ port: gateway.port(), host: "127.0.0.1", servername: "localhost" });
  await once(client, "error");
  await logged(gateway, {
    scope: "request",
    listener: "tls",
    error: `${ROUND}: 127.0.0.1:${gateway.port()} ${OWN}`,
  });
  const rounds = gateway.lines.filter((line) => line.scope === "request");
  assert.ok(rounds.length <= 2 * 5, `${rounds.length} requests`);
});

test("no target leads to the admin API, only a route that names it", async () => {
  const expression = 'request.headers["x-target"]';
  const config = (...routes: object[]): object => ({
    frontendPolicies: { connect: { mode: "route" } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  await using gateway = await TestGateway.start(
    config(
      {
        matches: [{ path: { pathPrefix: "/" }, headers: [{ name: "x-target", value: { regex: ".+" } }] }],
        backends: [{ dynamic: { target: expression } }],
      },
      { matches: [{ method: "CONNECT" }, { path: { pathPrefix: "/" } }], backends: [{ dynamic: {} }] },
    ),
  );
  const { port: admin } = new URL(gateway.url("admin"));
  const path = "/config_dump";
  const status = async (headers: Record<string, string>): Promise<number> =>
    (await call(gateway.port(), { path, headers })).status;
  const names = ["localhost", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"];
  for (const target of names.map((name) => `${name}:${admin}`)) {
    assert.equal(await status({ host: target }), 503, target);
    assert.equal(await status({ "x-target": target }), 503, target);
    const tunnel = await RawPeer.connect(gateway.port());
    tunnel.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    assert.equal(statusOf(await tunnel.message()), 503, target);
    tunnel.socket.destroy();
  }
  await logged(gateway, {
    scope: "request",
    endpoint: `localhost:${admin}`,
    error: `backend address not allowed: 127.0.0.1:${admin} is one of the gateway's own servers, at binds[0].listeners[0].routes[0].backends[0]`,
  });
  assert.equal(await gateway.reconfigure(config({ backends: [{ host: `127.0.0.1:${admin}` }] })), "applied");
  assert.equal(await status({ host: `localhost:${admin}` }), 503);
  assert.equal(await gateway.reconfigure(config({ backends: [{ internal: "forward" }] })), "applied");
  assert.equal(await status({ host: `localhost:${admin}` }), 200);
});

test("names below a denied domain and addresses of a denied network are not called", async () => {
  const upstream = await Upstream.start();
  upstream.on("/dynamic", (_request, response) => response.end("reached"));
  upstream.on("/static", (_request, response) => response.end("reached"));
  const gateway = await TestGateway.start({
    config: { workerThreads: 1, dns: { denyDomains: ["localhost"], denyNetworks: ["127.0.0.9/32"] } },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                name: "static",
                matches: [{ path: { pathPrefix: "/static" } }],
                backends: [{ host: `localhost:${upstream.port}` }],
              },
              { name: "dynamic", backends: [{ dynamic: { target: 'request.headers["x-target"]' } }] },
            ],
          },
        ],
      },
    ],
  });
  try {
    const port = gateway.port();
    assert.equal((await call(port, { path: "/static" })).status, 503);
    for (const [host, status] of [
      ["localhost", 503],
      ["LOCALHOST.", 503],
      ["127.0.0.9", 503],
      ["127.0.0.1", 200],
    ] as const)
      assert.equal(
        (await call(port, { path: "/dynamic", headers: { "x-target": `${host}:${upstream.port}` } })).status,
        status,
        host,
      );
  } finally {
    await gateway.stop();
    await upstream.close();
  }
});
