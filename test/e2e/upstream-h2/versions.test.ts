import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage as HttpRequest, ServerResponse as HttpResponse } from "node:http";
import { performServerHandshake } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import type { HttpVersion } from "../../../src/upstream/settings/settings.ts";
import { type Identity, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { ProxyServer } from "../../helpers/proxy-server.ts";
import { RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";
import { answer, H2Server, head, send } from "./support.ts";

function answerHttp1(request: HttpRequest, response: HttpResponse): void {
  response.end(`h1 ${(request.socket as TLSSocket).alpnProtocol || "nothing"}`);
}

const GRPC = head("POST / HTTP/1.1", "Content-Type: application/grpc", "Content-Length: 0");

/** The response of a gateway with these policies of its backend. */
async function ask(port: number, backendPolicies: PolicySet, request = head("GET / HTTP/1.1"), host = "127.0.0.1") {
  await using plane = await TestPlane.start([{ target: { type: "static", host, port }, backendPolicies }]);
  const client = await send(plane, request);
  const response = await client.message();
  client.socket.destroy();
  return response;
}

suite("the HTTP version of calls to backends inside TLS", { skip: noOpenssl }, () => {
  let ca: TestCa;
  let identity: Identity;

  before(() => {
    ca = new TestCa();
    identity = ca.issue("localhost");
  });
  after(() => ca?.[Symbol.dispose]());

  type Taken = "h2" | "http/1.1" | "both";

  /** Responds with the HTTP version and the negotiated ALPN protocol. */
  async function start(taken: Taken): Promise<Disposable & { readonly port: number; readonly connections: number }> {
    const { cert, key } = identity;
    let connections = 0;
    let served: Disposable & { readonly port: number };
    if (taken === "http/1.1") {
      const server = createHttpsServer({ cert, key, ALPNProtocols: ["http/1.1"] }, answerHttp1);
      server.on("secureConnection", () => connections++);
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      served = {
        port: (server.address() as AddressInfo).port,
        [Symbol.dispose]() {
          server.close();
          server.closeAllConnections();
        },
      };
    } else
      served = await H2Server.startTls(
        (stream, { ":scheme": scheme }) => answer(stream, `h2 ${scheme} ${stream.session?.alpnProtocol}`),
        { cert, key, allowHTTP1: taken === "both" },
        answerHttp1,
      );
    return {
      port: served.port,
      get connections() {
        return connections;
      },
      [Symbol.dispose]: () => served[Symbol.dispose](),
    };
  }

  const policies = (version?: HttpVersion, alpn?: string[]): PolicySet => ({
    ...(version !== undefined && { http: { version } }),
    backendTLS: { root: ca.cert, insecure: false, insecureHost: false, ...(alpn !== undefined && { alpn }) },
  });

  const both = ["h2", "http/1.1"];
  const cases: readonly [string, HttpVersion | undefined, string[] | undefined, Taken, string][] = [
    ["HTTP/1.1 unless it is said otherwise", undefined, undefined, "both", "h1 http/1.1"],
    ["HTTP/2 where it is forced", "HTTP/2.0", undefined, "both", "h2 https h2"],
    ["HTTP/1.1 where that is forced, even if h2 may be offered", "HTTP/1.1", both, "both", "h1 http/1.1"],
    ["what the server picks of those that are offered: h2", undefined, both, "both", "h2 https h2"],
    ["what the server picks of those that are offered: http/1.1", undefined, both, "http/1.1", "h1 http/1.1"],
    ["HTTP/2 when h2 alone is offered", undefined, ["h2"], "both", "h2 https h2"],
    ["what the server picks, where HTTP/2 is forced with a list", "HTTP/2.0", both, "http/1.1", "h1 http/1.1"],
  ];
  for (const [name, version, offered, taken, expected] of cases)
    test(name, async () => {
      using server = await start(taken);
      assert.equal((await ask(server.port, policies(version, offered), undefined, "localhost")).body, expected);
    });

  test("a server without ALPN gets HTTP/2 if that is forced", async () => {
    const { cert, key } = identity;
    const server = createTlsServer({ cert, key }, (socket) => {
      const session = performServerHandshake(socket);
      session.on("stream", (stream) => answer(stream, "h2 without ALPN"));
      session.on("error", () => {});
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.equal((await ask(port, policies("HTTP/2.0"), undefined, "localhost")).body, "h2 without ALPN");
    server.close();
  });

  test("no protocol in common is 503", async () => {
    using server = await start("http/1.1");
    const { body } = await ask(server.port, policies("HTTP/2.0"), undefined, "localhost");
    assert.equal(body, "upstream call failed");
  });

  test("connections that negotiated HTTP/1.1 are kept, and concurrent requests each have their own", async () => {
    using server = await start("http/1.1");
    const target = { type: "static", host: "localhost", port: server.port, dns: { mode: "first" } } as const;
    await using plane = await TestPlane.start([{ target, backendPolicies: policies(undefined, both) }]);
    const get = async (): Promise<string> => {
      const client = await send(plane, head("GET / HTTP/1.1"));
      const { body } = await client.message();
      client.socket.destroy();
      return body;
    };
    for (let i = 0; i < 3; i++) assert.equal(await get(), "h1 http/1.1");
    assert.equal(server.connections, 1);
    assert.deepEqual(await Promise.all(Array.from({ length: 5 }, get)), Array(5).fill("h1 http/1.1"));
    assert.ok(server.connections <= 6);
  });

  test("if both versions are offered, an upgrade uses a connection of HTTP/1.1", async () => {
    using server = await start("both");
    const request = head("GET / HTTP/1.1", "Connection: upgrade", "Upgrade: echo");
    const tls = policies(undefined, both);
    assert.equal((await ask(server.port, tls, request, "localhost")).body, "h1 http/1.1");
    assert.equal((await ask(server.port, tls, undefined, "localhost")).body, "h2 https h2");
  });

  test("HTTP/2 goes through a tunnel of a proxy", async () => {
    using server = await start("h2");
    await using proxy = await ProxyServer.start(server.port);
    const backendTunnel = { proxy: { type: "static", host: "127.0.0.1", port: proxy.port } } as const;
    const all = { ...policies("HTTP/2.0"), backendTunnel };
    assert.equal((await ask(443, all, undefined, "localhost")).body, "h2 https h2");
    assert.equal(proxy.asked.length, 1);
  });
});

test("plaintext is HTTP/1.1 unless HTTP/2 is forced, also for gRPC from plaintext HTTP/1.1 clients", async () => {
  await using old = await RawUpstream.answering((request) => reply(request.start));
  for (const request of [head("GET / HTTP/1.1"), GRPC])
    assert.match((await ask(old.port, {}, request)).body, / HTTP\/1\.1$/);
  using server = await H2Server.start((stream) => answer(stream, "h2"));
  assert.equal((await ask(server.port, { http: { version: "HTTP/2.0" } })).body, "h2");
});

test("plaintext HTTP/2 goes through a tunnel of a proxy, which could not forward it", async () => {
  using server = await H2Server.start((stream, { ":authority": authority }) => answer(stream, `h2 ${authority}`));
  await using proxy = await ProxyServer.start(server.port);
  const backendTunnel = { proxy: { type: "static", host: "127.0.0.1", port: proxy.port } } as const;
  const response = await ask(80, { http: { version: "HTTP/2.0" }, backendTunnel }, undefined, "shop.example");
  assert.equal(response.body, "h2 shop.example");
  assert.deepEqual(proxy.asked, ["shop.example:80 shop.example:80 "]);
});

test("appProtocols of a service select the version; http.version takes precedence", async () => {
  using server = await H2Server.start((stream) => answer(stream, "h2"));
  await using old = await RawUpstream.answering((request) => reply(request.start));
  const ports = { "80": 80, "81": 81, "82": 82 };
  const appProtocols = { "80": "http2", "81": "http1", "82": "http" };
  const services = [{ name: "s", namespace: "a", hostname: "s", vips: [], ports, appProtocols }];
  const at = (port: number) => ({ "80": server.port, "81": port, "82": port });
  const workload = { uid: "w", name: "w", namespace: "a", workloadIps: ["127.0.0.1"], capacity: 1 };
  const workloads = [{ ...workload, status: "healthy", services: { "a/s": at(old.port) } } as const];
  const to = (path: string, port: number, backendPolicies: PolicySet = {}) => ({
    path,
    target: { type: "service", key: "a/s", port } as const,
    backendPolicies,
  });
  await using plane = await TestPlane.start(
    [to("/two", 80), to("/one", 81), to("/none", 82), to("/forced", 80, { http: { version: "HTTP/1.1" } })],
    { services, workloads },
  );
  const bodies: string[] = [];
  for (const path of ["/two", "/one", "/none", "/forced"]) {
    const client = await send(plane, head(`GET ${path} HTTP/1.1`));
    const response = await client.message();
    bodies.push(statusOf(response) === 200 ? response.body : String(statusOf(response)));
    client.socket.destroy();
  }
  assert.deepEqual(bodies, ["h2", "GET /one HTTP/1.1", "GET /none HTTP/1.1", "503"]);
});
