import assert from "node:assert/strict";
import { createServer, type Server, type ServerOptions } from "node:https";
import { type AddressInfo, createServer as createNetServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import { DAMAGED_RECORD, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { GatewayProcess, refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer, RawUpstream } from "../../helpers/raw-peer.ts";

let ca: TestCa;
const servers: Server[] = [];

before(() => {
  if (noOpenssl === false) ca = new TestCa();
});
after(() => {
  for (const server of servers) server.close();
  ca?.[Symbol.dispose]();
});

/** An HTTPS server that responds with the client's certificate name and the server name; returns its port. */
async function backend(options: ServerOptions, closes = false): Promise<number> {
  const server = createServer(options, (request, response) => {
    const socket = request.socket as TLSSocket;
    const peer = socket.getPeerCertificate();
    if (closes) response.setHeader("connection", "close");
    const client = peer.subject === undefined ? "" : String(peer.subject.CN);
    response.end(
      JSON.stringify({
        name: socket.servername,
        client,
        resumed: socket.isSessionReused(),
        host: request.headers.host,
      }),
    );
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A route to the same host for each TLS configuration: `/0`, `/1`, … */
function routesTo(host: string, ...configs: object[]): object {
  const routes = configs.map((backendTLS, i) => ({
    matches: [{ path: { pathPrefix: `/${i}` } }],
    backends: [{ host, policies: { backendTLS } }],
  }));
  return { binds: [{ port: 0, listeners: [{ routes }] }] };
}

function gatewayTo(host: string, ...configs: object[]): Promise<LocalGateway> {
  return LocalGateway.start(routesTo(host, ...configs));
}

async function ask(gateway: Pick<TestGateway, "port">, path = "/0"): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
  return { status: response.status, text: await response.text() };
}

test("the handshake has the backend's name, and its certificate is verified with the CA", {
  skip: noOpenssl,
}, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key });
  await using gateway = await gatewayTo(`localhost:${port}`, { root: ca.certFile });
  const { status, text } = await ask(gateway);
  assert.equal(status, 200, text);
  const { name, host } = JSON.parse(text) as { name: string; host: string };
  assert.deepEqual([name, host], ["localhost", `localhost:${port}`]);
});

test("a certificate for another name, or of an untrusted CA, is 503 with the reason in the log", {
  skip: noOpenssl,
}, async () => {
  const identity = ca.issue("other.example");
  const port = await backend({ cert: identity.cert, key: identity.key });
  await using gateway = await gatewayTo(`localhost:${port}`, { root: ca.certFile }, {});
  const [name, trust] = [await ask(gateway, "/0"), await ask(gateway, "/1")];
  assert.deepEqual([name.status, trust.status], [503, 503]);
  assert.deepEqual([name.text, trust.text], ["upstream call failed", "upstream call failed"]);
  for (const why of [
    /^upstream call failed: .*localhost/,
    /^upstream call failed: .*add its CA to backendTLS\.root, at binds/,
  ])
    await gateway.until(() => gateway.lines.some((line) => why.test(String(line.error))), `${why} in the log`);
});

test("without root, the CAs of the system are trusted", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key });
  await using gateway = await GatewayProcess.start(routesTo(`localhost:${port}`, {}), {
    env: { SSL_CERT_FILE: ca.certFile, NODE_EXTRA_CA_CERTS: "" },
  });
  assert.equal((await ask(gateway)).status, 200);
});

test("root may be an intermediate CA", { skip: noOpenssl }, async () => {
  const intermediate = ca.issueCa("intermediate");
  const { cert, key } = ca.issueBelow(intermediate, "localhost");
  const port = await backend({ cert, key });
  await using gateway = await gatewayTo(`localhost:${port}`, { root: intermediate.certFile }, { root: ca.certFile });
  const [below, whole] = [await ask(gateway, "/0"), await ask(gateway, "/1")];
  assert.deepEqual([below.status, whole.status], [200, 503]);
});

test("hostname, subjectAltNames, insecureHost and insecure determine what is verified", {
  skip: noOpenssl,
}, async () => {
  const identity = ca.issue("other.example");
  const port = await backend({ cert: identity.cert, key: identity.key });
  const configs = [
    { root: ca.certFile, hostname: "other.example" },
    { root: ca.certFile, subjectAltNames: ["no.example", "other.example"] },
    { root: ca.certFile, insecureHost: true },
    { insecure: true },
  ];
  await using gateway = await gatewayTo(`localhost:${port}`, ...configs);
  for (const [i, tls] of configs.entries())
    assert.equal((await ask(gateway, `/${i}`)).status, 200, JSON.stringify(tls));
});

test("URIs in subjectAltNames are compared with the URIs of the certificate", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost", "spiffe://example.com/shop");
  const port = await backend({ cert: identity.cert, key: identity.key });
  await using gateway = await gatewayTo(
    `localhost:${port}`,
    { root: ca.certFile, subjectAltNames: ["spiffe://example.com/shop"] },
    { root: ca.certFile, subjectAltNames: ["spiffe://example.com/other", "spiffe://example.com/SHOP"] },
    { root: ca.certFile, subjectAltNames: ["spiffe://example.com/other", "localhost"] },
  );
  const statuses = [];
  for (const path of ["/0", "/1", "/2"]) statuses.push((await ask(gateway, path)).status);
  assert.deepEqual(statuses, [200, 503, 200]);
});

test("the gateway sends its certificate to a backend that requests one", { skip: noOpenssl }, async () => {
  const [server, client] = [ca.issue("localhost"), ca.issue("gateway.example")];
  const port = await backend({
    cert: server.cert,
    key: server.key,
    ca: ca.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const tls = { root: ca.certFile, cert: client.certFile, key: client.keyFile };
  await using gateway = await TestGateway.start(routesTo(`localhost:${port}`, tls));
  const { status, text } = await ask(gateway);
  assert.equal(status, 200, text);
  assert.equal((JSON.parse(text) as { client: string }).client, "gateway.example");
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.doesNotMatch(dump, /PRIVATE KEY/);
});

test("the log says why a backend rejects the gateway's certificate", { skip: noOpenssl }, async () => {
  const { cert, key } = ca.issue("localhost");
  const port = await backend({ cert, key, ca: ca.cert, requestCert: true, ALPNProtocols: ["h2", "http/1.1"] });
  const tls = { root: ca.certFile };
  await using gateway = await gatewayTo(`localhost:${port}`, tls, { ...tls, alpn: ["h2"] });
  for (const path of ["/0", "/1"]) {
    gateway.takeLines();
    assert.equal((await ask(gateway, path)).status, 503);
    const error = "upstream call failed: tlsv13 alert certificate required";
    await gateway.until(
      () => gateway.lines.some((line) => String(line.error).startsWith(`${error}, at `)),
      `the alert in the log, for ${path}`,
    );
  }
});

test("a response that ends with a damaged record is cut off", { skip: noOpenssl }, async (t) => {
  const { cert, key } = ca.issue("localhost");
  const server = createNetServer((carrier) => {
    const socket = new TLSSocket(carrier, { isServer: true, cert, key });
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf", () => carrier.write(DAMAGED_RECORD));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  await using gateway = await gatewayTo(`localhost:${port}`, { root: ca.certFile });
  const client = await RawPeer.connect(gateway.port());
  client.send("GET /0 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  await client.closed();
  assert.match(client.received, /\r\n\r\n4\r\nhalf\r\n$/);
});

test("later connections resume the session of the first", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key }, true);
  await using gateway = await gatewayTo(`127.0.0.1:${port}`, { root: ca.certFile, hostname: "localhost" });
  const resumed: unknown[] = [];
  for (let i = 0; i < 3; i++) resumed.push((JSON.parse((await ask(gateway)).text) as { resumed: boolean }).resumed);
  assert.deepEqual(resumed, [false, true, true]);
});

test("only the configured key exchanges are offered", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key, ecdhCurve: "secp384r1" });
  const offering = (group: string): object => ({ root: ca.certFile, keyExchangeGroups: [group] });
  await using gateway = await gatewayTo(`localhost:${port}`, offering("P-384"), offering("X25519"));
  assert.equal((await ask(gateway, "/0")).status, 200);
  assert.equal((await ask(gateway, "/1")).status, 503);
});

test("tcp.connectTimeout bounds the handshake too, and http.requestTimeout replaces the route's", async () => {
  await using silent = await RawUpstream.listen(async () => {});
  const route = (path: string, policies: object): object => ({
    matches: [{ path: { pathPrefix: path } }],
    policies: { timeout: { backendRequestTimeout: "1h" } },
    backends: [{ host: `127.0.0.1:${silent.port}`, policies }],
  });
  const routes = [
    route("/0", { backendTLS: { insecure: true }, tcp: { connectTimeout: "50ms" } }),
    route("/1", { http: { requestTimeout: "50ms" } }),
  ];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  for (const path of ["/0", "/1"])
    assert.deepEqual(await ask(gateway, path), { status: 504, text: "upstream call timeout" });
});

test("a dynamic backend is called with TLS too", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key });
  const dynamic = { target: `"localhost:${port}"` };
  const route = (path: string, backendTLS: object): object => ({
    matches: [{ path: { pathPrefix: path } }],
    backends: [{ dynamic, policies: { backendTLS } }],
  });
  const routes = [route("/0", { root: ca.certFile }), route("/1", { root: ca.certFile, hostname: "other.example" })];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  assert.equal((await ask(gateway, "/0")).status, 200);
  assert.equal((await ask(gateway, "/1")).status, 503);
});

test("TCP routes connect to their backends with TLS, of the route's policies or of their own", {
  skip: noOpenssl,
}, async () => {
  const identity = ca.issue("one.example");
  const secure = createTlsServer({ cert: identity.cert, key: identity.key, ALPNProtocols: ["other"] }, (socket) => {
    socket.on("error", () => {});
    socket.write(`hello ${socket.servername} ${socket.alpnProtocol}`);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(secure.address() as AddressInfo).port}`;
  const common = { backendTLS: { root: ca.certFile, hostname: "one.example" } };
  const own = { backendTLS: { root: ca.certFile, hostname: "two.example" } };
  const bind = (policies?: object): object => ({
    binds: [
      {
        port: 0,
        listeners: [{ protocol: "TCP", tcpRoutes: [{ policies: common, backends: [{ host, policies }] }] }],
      },
    ],
  });
  await using gateway = await LocalGateway.start(bind());
  const client = await RawPeer.connect(gateway.port());
  await client.take("hello one.example false");
  client.send("there and back");
  await client.take("there and back");
  client.socket.destroy();
  await gateway.reconfigure(bind(own));
  const refused = await RawPeer.connect(gateway.port());
  await refused.closed();
  await gateway.until(
    () => gateway.lines.some((line) => /upstream call failed: .*two\.example/.test(String(line.error))),
    "a log line that names what was wrong",
  );
  secure.close();
});

test("a file that is not a certificate is rejected when the configuration loads", async () => {
  const error = await refusedStart({
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                backends: [
                  { host: "a:1", policies: { backendTLS: { root: join(import.meta.dirname, "backend-tls.test.ts") } } },
                ],
              },
            ],
          },
        ],
      },
    ],
  });
  assert.match(error, /backendTLS\.root: cannot be used/);
});
