import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream, statusOf } from "../../helpers/raw-peer.ts";

const route = (host: string, more: object = {}): object => ({
  binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host, ...more }] }] }] }],
});

async function ask(port: number, fields = ""): Promise<number> {
  return statusOf(await RawPeer.ask(port, `GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n${fields}\r\n`));
}

/** Passes bytes on to another port, as a load balancer does, so that no address shows where they come from. */
async function detour(
  t: TestContext,
  most = Number.POSITIVE_INFINITY,
): Promise<{ readonly port: number; to: number; connections: number }> {
  const way = { port: 0, to: 0, connections: 0 };
  const open = new Set<Socket>();
  const server: Server = createServer((from) => {
    // So that an endless loop ends.
    if (++way.connections > most) {
      from.destroy();
      return;
    }
    const onward = connect(way.to, "127.0.0.1");
    for (const socket of [from, onward]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        from.destroy();
        onward.destroy();
      });
    }
    from.pipe(onward).pipe(from);
  }).listen(0, "127.0.0.1");
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  way.port = (server.address() as { port: number }).port;
  return way;
}

const VERSIONS = ["HTTP/1.1", "HTTP/2.0"] as const;

for (const version of VERSIONS)
  test(`${version}: a loop through the network ends with 508 after a few rounds, whatever the client and policies send`, async (t) => {
    const way = await detour(t);
    const policies = { http: { version } };
    const reset = { requestHeaderModifier: { set: { "cdn-loop": "tracegate; hops=0" }, remove: ["cdn-loop"] } };
    for (const routePolicies of [{}, reset, { requestHeaderModifier: { remove: ["cdn-loop"] } }]) {
      await using gateway = await LocalGateway.start({
        binds: [
          {
            port: 0,
            listeners: [
              { routes: [{ policies: routePolicies, backends: [{ host: `127.0.0.1:${way.port}`, policies }] }] },
            ],
          },
        ],
      });
      way.to = gateway.port();
      for (const fields of [
        "",
        "CDN-Loop: tracegate; hops=0\r\n",
        "cdn-loop: a.example\r\nCDN-Loop: tracegate;hops=-5\r\n",
      ]) {
        const before = gateway.lines.filter(({ scope }) => scope === "request").length;
        assert.equal(await ask(gateway.port(), fields), 508);
        const lines = gateway.lines.filter(({ scope }) => scope === "request").slice(before);
        assert.ok(lines.length <= 9, `${lines.length} requests`);
        assert.ok(lines.some(({ error }) => error === "loop detected: the request has passed 8 gateways"));
      }
    }
  });

test("a loop that tries again, or mirrors, does not multiply its requests in each round", async (t) => {
  const multiplied = [
    () => ({ retry: { attempts: 3, codes: [508], backoff: "1ms" } }),
    (host: string) => ({ requestMirror: { backend: { host }, percentage: 1 } }),
  ];
  for (const policy of multiplied) {
    const way = await detour(t);
    const host = `127.0.0.1:${way.port}`;
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ routes: [{ policies: policy(host), backends: [{ host }] }] }] }],
    });
    way.to = gateway.port();
    assert.equal(await ask(gateway.port()), 508);
    // 1 + T(h + 1) + n * T(h + 4) for a request with h hops: 153 with three retries, 37 with a mirror.
    const requests = gateway.lines.filter(({ scope }) => scope === "request").length;
    assert.ok(requests > 8 && requests <= 250, `${requests} requests`);
  }
});

test("loops through a mirror or an authorization service end too", async (t) => {
  const upstream = createHttpServer((_request, response) => response.end());
  t.after(() => upstream.close());
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  const { port } = upstream.address() as { port: number };
  for (const policy of [
    (host: string) => ({ requestMirror: { backend: { host }, percentage: 1 } }),
    (host: string) => ({ extAuthz: { host, protocol: { http: {} } } }),
  ]) {
    const way = await detour(t);
    const policies = policy(`127.0.0.1:${way.port}`);
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [{ host: `127.0.0.1:${port}` }] }] }] }],
    });
    way.to = gateway.port();
    await ask(gateway.port());
    await gateway.until(
      () => gateway.lines.some(({ error }) => String(error).startsWith("loop detected")),
      "a line about it",
    );
    assert.ok(gateway.lines.filter(({ scope }) => scope === "request").length <= 9);
  }
});

test("a loop of tunnels ends too: each CONNECT counts the gateways that the former one has passed", async (t) => {
  const ways: readonly [request: string, backend: object][] = [
    ["CONNECT far.example:80 HTTP/1.1\r\nHost: far.example:80\r\n\r\n", { dynamic: {} }],
    ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", { host: "far.example:80", http: { version: "HTTP/2.0" } }],
    ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", { host: "far.example:443", backendTLS: { insecure: true } }],
  ];
  for (const [request, { http, backendTLS, ...backend }] of ways as readonly [string, Record<string, object>][]) {
    const way = await detour(t, 64);
    const policies = { backendTunnel: { proxy: { host: `127.0.0.1:${way.port}` } }, http, backendTLS };
    await using gateway = await LocalGateway.start({
      frontendPolicies: { connect: { mode: "route" } },
      binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ ...backend, policies }] }] }] }],
    });
    way.to = gateway.port();
    assert.equal(statusOf(await RawPeer.ask(gateway.port(), request)), 503);
    await gateway.until(
      () => gateway.lines.some(({ error }) => error === "loop detected: the request has passed 8 gateways"),
      "a line about the loop",
    );
    assert.ok(way.connections <= 9, `${way.connections} connections`);
  }
});

test("a client that claims hops cannot evict the gateways behind this one", async (t) => {
  const upstream = createHttpServer((_request, response) => response.end());
  t.after(() => upstream.close());
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  await using second = await LocalGateway.start(route(`127.0.0.1:${(upstream.address() as { port: number }).port}`));
  for (const claimed of [true, false]) {
    const health = { eviction: { duration: "1h", consecutiveFailures: 1 } };
    await using first = await LocalGateway.start(
      claimed
        ? route(`127.0.0.1:${second.port()}`, { policies: { health } })
        : route("127.0.0.1:1", { policies: { health } }),
    );
    if (claimed) assert.equal(await ask(first.port()), 200);
    assert.equal(await ask(first.port(), claimed ? "CDN-Loop: tracegate; hops=7\r\n" : ""), claimed ? 508 : 503);
    assert.deepEqual(
      first.endpoints().map(({ evictedMs }) => evictedMs === null),
      [claimed],
    );
  }
});

test("a chain of two gateways works, and its backend sees the entries of both and of others", async () => {
  await using upstream = await RawUpstream.listen();
  await using second = await LocalGateway.start(route(`127.0.0.1:${upstream.port}`));
  await using first = await LocalGateway.start(route(`127.0.0.1:${second.port()}`));
  const client = await RawPeer.connect(first.port());
  client.send("GET / HTTP/1.1\r\nHost: a.test\r\nCDN-Loop: cdn.example; v=1\r\n\r\n");
  const peer = await upstream.connection();
  const head = await peer.take("\r\n\r\n");
  assert.match(head, /\r\ncdn-loop: tracegate; by=[0-9a-f]{16}; hops=2, cdn\.example; v=1\r\n/);
  peer.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  assert.equal(statusOf(await client.message()), 200);
  client.socket.destroy();
});

test("a request to a port of the gateway itself gets 508 at once, also over two ports", async () => {
  await using gateway = await LocalGateway.start({
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ dynamic: { target: 'request.headers["x-to"]' } }] }] }] }],
  });
  for (const host of ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
    assert.equal(await ask(gateway.port(), `x-to: ${host}:${gateway.port()}\r\n`), 508, host);
  assert.equal(gateway.lines.filter(({ scope }) => scope === "request").length, 4);
});

test("no request of a gateway process reaches its own servers through another machine", async (t) => {
  const way = await detour(t);
  await using gateway = await TestGateway.start(route(`127.0.0.1:${way.port}`));
  for (const server of ["stats", "admin", "readiness"] as const) {
    way.to = Number(new URL(gateway.url(server)).port);
    const path = server === "stats" ? "/metrics" : server === "readiness" ? "/healthz/ready" : "/config_dump";
    const asked = async (port: number): Promise<number> =>
      statusOf(await RawPeer.ask(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`));
    assert.equal(await asked(way.port), 200, `${server}, by others`);
    assert.equal(await asked(gateway.port()), 508, `${server}, by the gateway`);
  }
});
