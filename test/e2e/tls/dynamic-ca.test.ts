import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { suite, test } from "node:test";
import type { ConnectionOptions } from "node:tls";
import { AdminClient } from "../../../src/admin/client/client.ts";
import { type KeyKind, noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { EchoServer } from "../tcp/echo-server.ts";
import { traceOf } from "../trace/support.ts";
import { get, logged, tlsConnect } from "./support.ts";

type Files = Pick<TestCa, "certFile" | "keyFile">;

suite("listeners that issue certificates", { skip: noOpenssl }, () => {
  const listener = (hostname: string, { certFile, keyFile }: Files, options: object = {}) => ({
    hostname,
    protocol: "HTTPS",
    tls: { mode: "dynamicCa", cert: certFile, key: keyFile, ...options },
    routes: [{ policies: { directResponse: { status: 200, body: "made" } } }],
  });
  const bind = (...listeners: object[]): object => ({ binds: [{ port: 0, listeners }] });

  /** The serial number of the certificate for `servername`, which the client has verified. */
  async function serialOf(port: number, servername: string, options: ConnectionOptions): Promise<string> {
    const { socket } = await tlsConnect(port, { servername, ...options });
    const { serialNumber, subjectaltname } = socket.getPeerCertificate();
    assert.equal(subjectaltname, `DNS:${servername}`);
    socket.destroy();
    return serialNumber;
  }

  const kinds: readonly KeyKind[] = ["P-256", "P-384", "rsa:2048"];
  for (const kind of kinds)
    test(`each name gets a matching certificate, which stays the same, from a CA with a key ${kind}`, async () => {
      using ca = new TestCa("the CA", kind);
      await using gateway = await LocalGateway.start(bind(listener("*", ca)));
      const port = gateway.port();
      for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
        const options = { ca: ca.cert, minVersion: version, maxVersion: version };
        assert.equal((await get(port, "one.example", options)).body, "made");
        const { socket } = await tlsConnect(port, { ...options, servername: "one.example" });
        assert.equal(socket.getProtocol(), version);
        socket.destroy();
      }
      const trusted = { ca: ca.cert };
      const one = await serialOf(port, "one.example", trusted);
      const two = await serialOf(port, "two.example", trusted);
      assert.notEqual(one, two);
      assert.deepEqual(
        [await serialOf(port, "two.example", trusted), await serialOf(port, "one.example", trusted)],
        [two, one],
      );
    });

  test("a TCP listener that terminates TLS works the same way", async () => {
    using ca = new TestCa();
    await using inside = await EchoServer.start("inside");
    const { routes: _http, ...rest } = listener("*.ends.example", ca);
    const tcp = { ...rest, protocol: "TLS", tcpRoutes: [{ name: "e", backends: [{ host: inside.address }] }] };
    await using gateway = await LocalGateway.start(bind(tcp, listener("web.example", ca)));
    const { peer, socket } = await tlsConnect(gateway.port(), { ca: ca.cert, servername: "a.ends.example" });
    await peer.take("inside");
    assert.equal(socket.getPeerCertificate().subject.CN, "a.ends.example");
    socket.destroy();
    assert.equal((await get(gateway.port(), "web.example", { ca: ca.cert })).body, "made");
  });

  test("clients without a server name, with one of no listener or an invalid one are closed, and the log says why", async () => {
    using ca = new TestCa();
    await using gateway = await LocalGateway.start(bind(listener("*.host.example", ca), listener("a.example", ca)));
    const nameless = { ca: ca.cert, checkServerIdentity: () => undefined };
    const refused = async (options: ConnectionOptions, error: string): Promise<void> => {
      await assert.rejects(tlsConnect(gateway.port(), options));
      await logged(gateway, { scope: "request", message: "rejected", error });
    };
    await serialOf(gateway.port(), "one.host.example", { ca: ca.cert });
    await refused({ ca: ca.cert, servername: "host.example" }, "no TLS listener match for host.example");
    await refused(nameless, "no TLS listener match for a client that names no server");
    await gateway.reconfigure(bind(listener("*", ca)));
    const why = "TLS handshake failed: the client";
    await refused(nameless, `${why} names no server, so there is no name to make a certificate for`);
    const odd = { ...nameless, servername: "-odd.example" };
    await refused(odd, `${why} asks for -odd.example, which is not a DNS name`);
    await serialOf(gateway.port(), "one.host.example", { ca: ca.cert });
  });

  test("another CA in the same files issues other certificates", async () => {
    using ca = new TestCa();
    using next = new TestCa("the next CA", "P-384");
    await using gateway = await TestGateway.start(bind(listener("*", ca)));
    const port = gateway.port();
    await serialOf(port, "one.example", { ca: ca.cert });
    await copyFile(next.keyFile, ca.keyFile);
    await copyFile(next.certFile, ca.certFile);
    await logged(gateway, { message: "configuration reloaded" });
    await serialOf(port, "one.example", { ca: next.cert });
  });

  test("files that are not a CA, and a client CA beside it, are rejected with their position", async () => {
    using ca = new TestCa();
    using odd = new TestCa("odd", "P-521");
    using other = new TestCa();
    const host = ca.issue("one.example");
    const error = await refusedStart(
      bind(
        listener("a.example", host),
        listener("b.example", { certFile: ca.certFile, keyFile: other.keyFile }),
        listener("c.example", odd),
        listener("d.example", ca, { root: other.certFile }),
        listener("e.example", ca, {
          maxTLSVersion: "TLS_V1_2",
          cipherSuites: ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        }),
      ),
    );
    for (const problem of [
      `0].tls.cert: ${host.certFile}: the certificate is not that of a CA`,
      `1].tls.key: ${other.keyFile}: the private key does not belong to the certificate of cert`,
      `2].tls.key: ${odd.keyFile}: a CA with this kind of key cannot be used`,
      "3].tls.root: cannot be set with mode: dynamicCa",
      "4].tls.cipherSuites: none of these fits",
    ])
      assert.ok(error.includes(`binds[0].listeners[${problem}`), `${problem} in ${error}`);
  });

  test("the CA's key is shown nowhere", async () => {
    using ca = new TestCa();
    await using gateway = await TestGateway.start(bind(listener("*", ca)));
    const admin = new AdminClient(gateway.url("admin"));
    await admin.setLogging("trace");
    const events = await traceOf(gateway, () => get(gateway.port(), "one.example", { ca: ca.cert }));
    await logged(gateway, { message: "certificate made", listener: "default/default/bind/0/listener0" });
    const dump = JSON.stringify(await admin.configDump());
    assert.match(dump, /"protocol":\{"HTTPS":\{"certificateSource":"DynamicCa"\}\}/);
    const text = dump + JSON.stringify([await admin.tasks(), events, gateway.lines]);
    assert.ok(events.length > 0);
    assert.doesNotMatch(text, /PRIVATE KEY/);
    for (const line of ca.key.split("\n").filter((each) => each !== "" && !each.startsWith("-")))
      assert.ok(!text.includes(line));
  });

  test("an environment variable bounds the number of cached certificates", async () => {
    using ca = new TestCa();
    const env = { DYNAMIC_CA_CERT_CACHE_CAPACITY: "1", DYNAMIC_CA_CERT_CACHE_TTL: "1h" };
    await using gateway = await TestGateway.start(bind(listener("*", ca)), { env });
    const [port, trusted] = [gateway.port(), { ca: ca.cert }];
    const one = await serialOf(port, "one.example", trusted);
    assert.equal(await serialOf(port, "one.example", trusted), one);
    await serialOf(port, "two.example", trusted);
    assert.notEqual(await serialOf(port, "one.example", trusted), one);
    const { config } = (await (await fetch(`${gateway.url("admin")}/config_dump`)).json()) as { config: object };
    assert.deepEqual("dynamicCaCertCache" in config && config.dynamicCaCertCache, { ttl: "1h0m0s", capacity: 1 });
  });

  test("invalid environment variables fail the start", async () => {
    using ca = new TestCa();
    const env = { DYNAMIC_CA_CERT_CACHE_CAPACITY: "many", DYNAMIC_CA_CERT_CACHE_TTL: "0" };
    const error = await refusedStart(bind(listener("*", ca)), { env });
    assert.match(error, /DYNAMIC_CA_CERT_CACHE_TTL is not valid; expected seconds, or a duration/);
    assert.match(error, /DYNAMIC_CA_CERT_CACHE_CAPACITY is not valid; expected a number/);
  });
});
