import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { ProxyServer } from "../../helpers/proxy-server.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { EchoServer } from "../tcp/echo-server.ts";

let ca: TestCa;
let identity: Identity;

before(() => {
  if (noOpenssl !== false) return;
  ca = new TestCa();
  identity = ca.issue("one.example");
});
after(() => ca?.[Symbol.dispose]());

const http = (backends: object[], others: object = {}): object => ({
  binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
  ...others,
});

/** An HTTPS server for `one.example`. */
async function secureBackend(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createSecureServer({ cert: identity.cert, key: identity.key }, (request, response) =>
    response.end(`secure ${request.url} ${request.headers.host}`),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("TLS goes through a tunnel, and the connection is reused", { skip: noOpenssl }, async () => {
  await using backend = await secureBackend();
  await using proxy = await ProxyServer.start(backend.port);
  const policies = {
    backendTLS: { root: ca.certFile },
    backendTunnel: { proxy: { host: `127.0.0.1:${proxy.port}` } },
  };
  await using gateway = await LocalGateway.start(http([{ host: "one.example:443", policies }]));
  for (const path of ["/a", "/b"]) {
    const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
    assert.equal(await response.text(), `secure ${path} one.example`);
  }
  assert.deepEqual(proxy.asked, ["one.example:443 one.example:443 "]);
});

test("the proxy gets the credentials that it requires; if it rejects a CONNECT, the request is 503, and the log has the proxy's status", {
  skip: noOpenssl,
}, async () => {
  await using backend = await secureBackend();
  await using proxy = await ProxyServer.start(backend.port, identity);
  const backendAuth = { key: { value: "c2VjcmV0", location: { header: { name: "authorization", prefix: "Basic " } } } };
  const policies = {
    backendTLS: { root: ca.certFile },
    backendTunnel: { proxy: { backend: "/proxy" } },
  };
  await using gateway = await TestGateway.start(
    http([{ host: "one.example:443", policies }], {
      backends: [
        {
          name: "proxy",
          host: `127.0.0.1:${proxy.port}`,
          policies: { backendAuth, backendTLS: { root: ca.certFile, hostname: "one.example" } },
        },
      ],
    }),
  );
  const url = `http://127.0.0.1:${gateway.port()}/`;
  proxy.status = 407;
  const refused = await fetch(url);
  assert.equal(refused.status, 503);
  assert.equal(await refused.text(), "upstream call failed");
  const why = "upstream call failed: the proxy returned 407 to CONNECT one.example:443";
  await gateway.until(
    () => gateway.lines.some((line) => String(line.error).startsWith(`${why}, at `)),
    "the reason in the log",
  );
  proxy.status = 200;
  assert.equal((await fetch(url)).status, 200);
  assert.deepEqual(new Set(proxy.asked), new Set(["one.example:443 one.example:443 Basic c2VjcmV0"]));
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.doesNotMatch(dump, /c2VjcmV0/);
});

test("plaintext requests are sent to the proxy for forwarding", async () => {
  await using proxy = await RawUpstream.answering((request) => {
    return reply(`${request.start}|${valuesOf(request, "host")}|${valuesOf(request, "proxy-authorization")}`);
  });
  const backendTunnel = { proxy: { host: `127.0.0.1:${proxy.port}` }, policies: { backendAuth: { key: "secret" } } };
  await using gateway = await LocalGateway.start(http([{ host: "10.1.2.3:81", policies: { backendTunnel } }]));
  const client = await RawPeer.connect(gateway.port());
  for (const path of ["/a?b=c", "*"]) {
    client.send(`${path === "*" ? "OPTIONS" : "GET"} ${path} HTTP/1.1\r\nHost: client.example\r\n\r\n`);
    const response = await client.message();
    assert.equal(statusOf(response), 200, response.body);
    const target = `http://10.1.2.3:81${path === "*" ? "" : path}`;
    const method = path === "*" ? "OPTIONS" : "GET";
    assert.equal(response.body, `${method} ${target} HTTP/1.1|10.1.2.3:81|Bearer secret`);
  }
  client.socket.destroy();
});

test("the proxy may be a pool, and requests follow a change of its endpoints", async () => {
  await using first = await RawUpstream.answering(() => reply("first"));
  await using second = await RawUpstream.answering(() => reply("second"));
  const policies = { backendTunnel: { proxy: { backend: "/proxies" } } };
  const config = ({ port }: RawUpstream): object => ({
    ...http([{ host: "far.example:80", policies }]),
    backends: [{ name: "proxies", endpoints: [{ host: `127.0.0.1:${port}` }] }],
  });
  await using gateway = await LocalGateway.start(config(first));
  for (const [proxy, expected] of [
    [first, "first"],
    [second, "second"],
  ] as const) {
    await gateway.reconfigure(config(proxy));
    const { body } = await RawPeer.ask(gateway.port(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.equal(body, expected);
  }
});

test("TCP routes go through a tunnel, also by the workloads of a service", async () => {
  await using echo = await EchoServer.start("hello ");
  await using proxy = await ProxyServer.start(echo.port);
  const policies = { backendTunnel: { proxy: { service: { name: "infra/proxy", port: 3128 } } } };
  const tcpRoutes = [{ policies, backends: [{ host: "far.example:5432" }] }];
  await using gateway = await LocalGateway.start({
    binds: [{ port: 0, listeners: [{ protocol: "TCP", tcpRoutes }] }],
    services: [{ name: "proxy", namespace: "infra", hostname: "proxy", ports: { 3128: proxy.port } }],
    workloads: [
      { uid: "a", name: "a", namespace: "infra", workloadIps: ["127.0.0.1"], services: { "infra/proxy": {} } },
    ],
  });
  const client = await RawPeer.connect(gateway.port());
  await client.take("hello ");
  client.send("there and back");
  await client.take("there and back");
  client.socket.destroy();
  assert.deepEqual(proxy.asked, ["far.example:5432 far.example:5432 "]);
});
