import assert from "node:assert/strict";
import { createServer, type Server, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestGateway } from "../../helpers/gateway.ts";

let ca: TestCa;
const servers: Server[] = [];

before(() => {
  if (noOpenssl === false) ca = new TestCa();
});
after(() => {
  for (const server of servers) server.close();
  ca?.[Symbol.dispose]();
});

/** An HTTPS server that says who called and for which name; returns its port. */
async function backend(options: ServerOptions): Promise<number> {
  const server = createServer(options, (request, response) => {
    const socket = request.socket as TLSSocket;
    const peer = socket.getPeerCertificate();
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

function gatewayTo(host: string, backendTLS: object): Promise<TestGateway> {
  const backends = [{ host, policies: { backendTLS } }];
  return TestGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }] });
}

async function ask(gateway: TestGateway): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`);
  return { status: response.status, text: await response.text() };
}

test("the backend is asked for by its name and checked against the CA", { skip: noOpenssl }, async () => {
  const identity = ca.issue("localhost");
  const port = await backend({ cert: identity.cert, key: identity.key });
  await using gateway = await gatewayTo(`localhost:${port}`, { root: ca.certFile });
  const { status, text } = await ask(gateway);
  assert.equal(status, 200, text);
  const { name, host } = JSON.parse(text) as { name: string; host: string };
  assert.deepEqual([name, host], ["localhost", `localhost:${port}`]);
});

test("a certificate of another name, or of a CA that is not trusted, is 503 with the reason", {
  skip: noOpenssl,
}, async () => {
  const identity = ca.issue("other.example");
  const port = await backend({ cert: identity.cert, key: identity.key });
  for (const [tls, reason] of [
    [{ root: ca.certFile }, /localhost/],
    [{}, /unable to|self.signed|certificate/],
  ] as const) {
    await using gateway = await gatewayTo(`localhost:${port}`, tls);
    const { status, text } = await ask(gateway);
    assert.equal(status, 503);
    assert.match(text, reason);
  }
});

test("hostname, subjectAltNames, insecureHost and insecure say what is checked", { skip: noOpenssl }, async () => {
  const identity = ca.issue("other.example");
  const port = await backend({ cert: identity.cert, key: identity.key });
  for (const tls of [
    { root: ca.certFile, hostname: "other.example" },
    { root: ca.certFile, subjectAltNames: ["no.example", "other.example"] },
    { root: ca.certFile, insecureHost: true },
    { insecure: true },
  ]) {
    await using gateway = await gatewayTo(`localhost:${port}`, tls);
    assert.equal((await ask(gateway)).status, 200, JSON.stringify(tls));
  }
});

test("the gateway shows its certificate to a backend that asks for one", { skip: noOpenssl }, async () => {
  const [server, client] = [ca.issue("localhost"), ca.issue("gateway.example")];
  const port = await backend({
    cert: server.cert,
    key: server.key,
    ca: ca.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const tls = { root: ca.certFile, cert: client.certFile, key: client.keyFile };
  await using gateway = await gatewayTo(`localhost:${port}`, tls);
  const { status, text } = await ask(gateway);
  assert.equal(status, 200, text);
  assert.equal((JSON.parse(text) as { client: string }).client, "gateway.example");
  const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
  assert.doesNotMatch(dump, /PRIVATE KEY/);
});

test("a file that is no certificate is refused when the configuration loads", async () => {
  const gateway = await TestGateway.launch({
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
  assert.notEqual(await gateway.exited(), 0);
  assert.match(gateway.stderr, /backendTLS\.root: cannot be used/);
  await gateway.stop();
});
