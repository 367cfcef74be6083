import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { attributesOf } from "../../helpers/otlp/decode.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";
import { logged, tlsConnect } from "../tls/support.ts";
import { EchoServer } from "./echo-server.ts";

suite("the access log of TCP connections", () => {
  test("fields are removed and added; expressions over requests add none", async () => {
    await using echo = await EchoServer.start("hello");
    await using gateway = await LocalGateway.start({
      frontendPolicies: {
        accessLog: {
          remove: ["src.addr", "route"],
          add: {
            port: "source.port",
            at: 'destination.address + ":" + string(destination.port)',
            method: "request.method",
            listener: '"other"',
          },
        },
      },
      binds: [{ port: 0, listeners: [{ name: "raw", protocol: "TCP", tcpRoutes: [to(echo)] }] }],
    });
    const from = await connectOnce(gateway.port());
    await logged(gateway, {
      scope: "request",
      protocol: "tcp",
      listener: "other",
      port: from,
      at: `127.0.0.1:${gateway.port()}`,
      endpoint: echo.address,
      "src.addr": undefined,
      route: undefined,
      method: undefined,
    });
  });

  test("the filter chooses connections, which have no request; a reload applies to open connections", async () => {
    await using echo = await EchoServer.start("hello");
    const config = (filter: string): object => ({
      frontendPolicies: { accessLog: { filter } },
      binds: [{ port: 0, listeners: [{ name: "raw", protocol: "TCP", tcpRoutes: [to(echo)] }] }],
    });
    await using gateway = await LocalGateway.start(config("!has(request.method) || response.code >= 500"));
    const lines = () => gateway.lines.filter(({ scope }) => scope === "request");
    await connectOnce(gateway.port());
    await gateway.until(() => lines().length === 1, "the line");
    const open = await RawPeer.connect(gateway.port());
    await open.take("hello");
    await gateway.reconfigure(config("source.port == 1"));
    open.end();
    await open.closed();
    await connectOnce(gateway.port());
    await gateway.reconfigure(config('source.address == "127.0.0.1"'));
    await connectOnce(gateway.port());
    await gateway.until(() => lines().length >= 2, "the second line");
    assert.equal(lines().length, 2);
  });

  test("a collector gets a record of each TLS connection, with its own fields", { skip: noOpenssl }, async () => {
    using ca = new TestCa();
    const identity = ca.issue("one.example");
    await using echo = await EchoServer.start("hello");
    await using collector = await TestCollector.http();
    await using gateway = await TestGateway.start(
      {
        frontendPolicies: {
          accessLog: {
            otlp: {
              host: `127.0.0.1:${collector.port}`,
              protocol: "http",
              filter: 'destination.hostname == "one.example"',
              fields: { add: { "client.address": "source.address" }, remove: ["src.addr"] },
            },
          },
        },
        binds: [
          {
            port: 0,
            listeners: [
              {
                name: "secure",
                protocol: "TLS",
                hostname: "*.example",
                tls: { cert: identity.certFile, key: identity.keyFile },
                tcpRoutes: [to(echo)],
              },
            ],
          },
        ],
      },
      // Records are exported although no line is written.
      { env: { RUST_LOG: "info,request=off" } },
    );
    for (const servername of ["two.example", "one.example"]) {
      const { peer } = await tlsConnect(gateway.port(), {
        servername,
        ca: ca.cert,
        checkServerIdentity: () => undefined,
      });
      await peer.take("hello");
      peer.end();
      await peer.closed();
    }
    const entries = await collector.until(({ length }) => length > 0);
    assert.equal(entries.length, 1);
    const [record] = entries;
    const { duration, ...attributes } = attributesOf(record?.attributes);
    assert.equal(typeof duration, "number");
    assert.deepEqual(attributes, {
      gateway: "default/default",
      listener: "secure",
      route: "default/r",
      endpoint: echo.address,
      "tls.sni": "one.example",
      protocol: "tls",
      "client.address": "127.0.0.1",
      "bytes.received": 0,
      "bytes.sent": "hello".length,
    });
    assert.deepEqual(record?.body, { string_value: "connection" });
    assert.deepEqual(
      gateway.lines.filter(({ scope }) => scope === "request"),
      [],
    );
  });
});

function to({ address }: EchoServer): object {
  return { name: "r", backends: [{ host: address }] };
}

/** Connects, takes the greeting, and ends; returns the client's port. */
async function connectOnce(port: number): Promise<number> {
  const client = await RawPeer.connect(port);
  await client.take("hello");
  const { localPort = 0 } = client.socket;
  client.end();
  await client.closed();
  return localPort;
}
