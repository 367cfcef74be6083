import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTlsServer, type Server } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { after, before, suite, test } from "node:test";
import type { CallTiming } from "../../../src/trace/events.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { call, closedPort, messageOf, traceOf, Upstream } from "./support.ts";

const SECONDS = /^\d+\.\d{9}s$/;

suite("the timing of a call", { skip: noOpenssl }, () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let secure: Server;
  let ca: TestCa;
  /** Accepts connections and never begins a handshake. */
  const mute = createServer();

  before(async () => {
    upstream = await Upstream.start();
    ca = new TestCa();
    const { cert, key } = ca.issue("localhost");
    secure = createTlsServer({ cert, key }, (_request, response) => response.end());
    for (const server of [secure, mute]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    const port = (server: { address(): unknown }) => (server.address() as AddressInfo).port;
    const tls = { insecure: true };
    const backends = {
      plain: { host: upstream.address },
      named: { host: `localhost:${upstream.port}` },
      secure: { host: `127.0.0.1:${port(secure)}`, policies: { backendTLS: tls } },
      refused: { host: `127.0.0.1:${await closedPort()}` },
      mute: { host: `127.0.0.1:${port(mute)}`, policies: { backendTLS: tls, tcp: { connectTimeout: "200ms" } } },
    };
    const routes = Object.entries(backends).map(([name, backend]) => ({
      name,
      matches: [{ path: { exact: `/${name}` } }],
      backends: [backend],
    }));
    gateway = await TestGateway.start({
      ...proxyTo(upstream.address),
      config: { workerThreads: 1, dns: { lookupFamily: "V4Only" } },
      binds: [{ port: 0, listeners: [{ routes }] }],
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
    for (const server of [secure, mute]) server.close();
    secure.closeAllConnections();
    ca[Symbol.dispose]();
  });

  async function timingOf(name: string): Promise<CallTiming> {
    const events = await traceOf(gateway, () => call(gateway.port(), { path: `/${name}` }));
    const { timing } = messageOf(events, "backendCallResult");
    assert.ok(timing);
    for (const [step, value] of Object.entries(timing)) if (step !== "reusedConnection") assert.match(value, SECONDS);
    return timing;
  }

  test("a new connection: each step; then the same connection, reused", async () => {
    const first = await timingOf("plain");
    assert.deepEqual(Object.keys(first), ["reusedConnection", "connect", "firstByte"]);
    assert.equal(first.reusedConnection, false);
    const second = await timingOf("plain");
    assert.deepEqual(Object.keys(second), ["reusedConnection", "firstByte"]);
    assert.equal(second.reusedConnection, true);
  });

  test("a name is looked up; TLS is a step of its own", async () => {
    assert.deepEqual(Object.keys(await timingOf("named")), ["reusedConnection", "dns", "connect", "firstByte"]);
    assert.deepEqual(Object.keys(await timingOf("secure")), ["reusedConnection", "connect", "tls", "firstByte"]);
  });

  test("without a connection: the steps until it failed", async () => {
    assert.deepEqual(Object.keys(await timingOf("refused")), ["reusedConnection", "connect"]);
    const { tls = "" } = await timingOf("mute");
    assert.ok(Number.parseFloat(tls) > 0, "it hung in the handshake");
  });
});
