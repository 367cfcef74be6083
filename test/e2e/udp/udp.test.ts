import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { suite, test } from "node:test";
import { codeOf } from "../../../src/base/errors.ts";
import type { PlaneOptions } from "../../helpers/data-plane.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { refusedStart, TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";
import { logged, metric } from "../tls/support.ts";

const bind = (backends: readonly object[], frontendPolicies: object = {}): object => ({
  binds: [{ port: 0, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes: [{ name: "r", backends }] }] }],
  frontendPolicies,
});
const echo = (name: string) => UdpPeer.open((text) => `${name}:${text}`);
const BIND = "bind/udp/0";
const dropped = (gateway: LocalGateway, reason: string) =>
  metric(gateway, "udp_dropped_datagrams_total", `bind="${BIND}"`, `reason="${reason}"`);

/**
 * A taken UDP port whose number is free for TCP, and stays so: it is outside the range from which the system chooses ports
 * for clients and for servers on port 0.
 */
async function udpPortWithFreeTcpPort(): Promise<UdpPeer> {
  for (let port = 20_000 + (process.pid % 1000); port < 30_000; port++) {
    const udp = await UdpPeer.open(undefined, "0.0.0.0", port).catch(() => undefined);
    if (udp === undefined) continue;
    if (await canListen(port)) return udp;
    await udp[Symbol.asyncDispose]();
  }
  throw new Error("no port is free for both");
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "0.0.0.0"), "listening");
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Waits until `count` datagrams have been dropped for the reason. */
async function untilDropped(gateway: LocalGateway, reason: string, count: number): Promise<void> {
  const text = `tracegate_udp_dropped_datagrams_total{bind="${BIND}",reason="${reason}"} ${count}\n`;
  await gateway.until(() => gateway.metricsText().includes(text), `${count} dropped for ${reason}`);
}

async function openMany(count: number, host?: string): Promise<AsyncDisposable & { readonly all: readonly UdpPeer[] }> {
  const all = await Promise.all(Array.from({ length: count }, () => UdpPeer.open(undefined, host)));
  return {
    all,
    [Symbol.asyncDispose]: async () => void (await Promise.all(all.map((peer) => peer[Symbol.asyncDispose]()))),
  };
}

/** Servers on one port of several addresses. */
async function openTogether(hosts: readonly string[]): Promise<AsyncDisposable & { readonly all: readonly UdpPeer[] }> {
  for (;;) {
    const all: UdpPeer[] = [];
    const close = async () => void (await Promise.all(all.map((peer) => peer[Symbol.asyncDispose]())));
    try {
      for (const host of hosts) all.push(await UdpPeer.open((text) => text, host, all[0]?.port));
      return { all, [Symbol.asyncDispose]: close };
    } catch (error) {
      // Another test has the port at one of the addresses.
      await close();
      if (codeOf(error) !== "EADDRINUSE") throw error;
    }
  }
}

suite("UDP listeners", () => {
  test("a backend that is the gateway's own port gets nothing, on any address of this host", async () => {
    await using gateway = await LocalGateway.start(bind([]));
    const port = gateway.port(BIND);
    for (const [i, host] of ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"].entries()) {
      await gateway.reconfigure(bind([{ host: `${host}:${port}` }]));
      await using client = await UdpPeer.open();
      client.send("one", port);
      client.send("two", port);
      await untilDropped(gateway, "backend", 2 * (i + 1));
    }
    await gateway.reconfigure(bind([]));
    const sessions = gateway.lines.filter(({ protocol }) => protocol === "udp");
    assert.ok(sessions.length === 4 && sessions.every(({ error }) => String(error).startsWith("loop detected: ")));
  });

  test("a session whose backend becomes a port of the gateway ends", async () => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(bind([{ host: server.address }]));
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("1", gateway.port(BIND)), "a:1");
    const forget = gateway.own.addPort("udp", "bind", server.port);
    await gateway.until(() => gateway.lines.some(({ protocol }) => protocol === "udp"), "the session's line");
    forget();
    assert.match(String(gateway.lines.find(({ protocol }) => protocol === "udp")?.error), /^loop detected: /);
  });

  test("a datagram whose source is one of the gateway's own ports is dropped", async () => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(bind([{ host: server.address }]));
    await using forger = await UdpPeer.open();
    const forget = gateway.own.addPort("udp", "bind", forger.port);
    forger.send("round", gateway.port(BIND));
    await untilDropped(gateway, "own-address", 1);
    assert.equal(server.received.length, 0);
    forget();
    assert.equal(await forger.ask("again", gateway.port(BIND)), "a:again");
  });

  test("datagrams go both ways, a session keeps its socket, and is logged and counted at its end", async () => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(
      bind([{ host: server.address }], { udp: { idleTimeout: "1500ms" } }),
    );
    const port = gateway.port(BIND);
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("one", port), "a:one");
    assert.equal(await client.ask("", port), "a:", "an empty datagram is one too");
    assert.equal(await client.ask("three", port), "a:three");
    const ports = server.received.map((each) => each.port);
    assert.equal(new Set(ports).size, 1, "the backend sees one peer for one client");
    assert.equal(await metric(gateway, "udp_sessions", `bind="${BIND}"`), 1);

    await using other = await UdpPeer.open();
    assert.equal(await other.ask("four", port), "a:four");
    assert.notEqual(server.received.at(-1)?.port, ports[0], "another client is another peer");

    await logged(gateway, {
      scope: "request",
      gateway: "default/default",
      listener: "dns",
      route: "default/r",
      endpoint: server.address,
      "src.addr": client.address,
      protocol: "udp",
      error: undefined,
      "bytes.received": 8,
      "bytes.sent": 14,
    });
    await gateway.until(
      () => gateway.tasks().every(({ connections }) => connections.length === 0),
      "all sessions to end",
    );
    assert.equal(await metric(gateway, "udp_sessions", `bind="${BIND}"`), 0);
    const labels = ['listener="dns"', 'protocol="udp"'];
    assert.equal(await metric(gateway, "downstream_connections_total", ...labels), 2);
    assert.equal(await metric(gateway, "downstream_received_bytes_total", ...labels), 12);
    assert.equal(await metric(gateway, "downstream_sent_bytes_total", ...labels), 20);
    assert.equal(await metric(gateway, "udp_datagrams_total", 'listener="dns"', 'direction="received"'), 4);
    assert.equal(await metric(gateway, "udp_datagrams_total", 'listener="dns"', 'direction="sent"'), 4);
  });

  test("the largest datagrams pass whole, larger ones than configured are dropped", async () => {
    await using server = await UdpPeer.open((text) => text);
    const backends = [{ host: server.address }];
    await using gateway = await LocalGateway.start(bind(backends));
    await using client = await UdpPeer.open();
    const large = "x".repeat(65_507);
    assert.equal(await client.ask(large, gateway.port(BIND)), large);
    await gateway.reconfigure(bind(backends, { udp: { maxDatagramSize: 10 } }));
    client.send("y".repeat(11), gateway.port(BIND));
    assert.equal(await client.ask("z".repeat(10), gateway.port(BIND)), "z".repeat(10));
    assert.equal(await dropped(gateway, "size"), 1);
  });

  test("sessions are spread by weight, and each stays with its backend", async () => {
    await using one = await echo("one");
    await using two = await echo("two");
    await using never = await echo("never");
    await using gateway = await LocalGateway.start(
      bind([{ host: one.address }, { host: two.address }, { host: never.address, weight: 0 }]),
    );
    const seen = new Set<string>();
    for (let i = 0; i < 100 && seen.size < 2; i++) {
      await using client = await UdpPeer.open();
      const first = await client.ask("", gateway.port(BIND));
      for (let j = 0; j < 3; j++) assert.equal(await client.ask("", gateway.port(BIND)), first);
      seen.add(first);
    }
    assert.deepEqual([...seen].sort(), ["one:", "two:"]);
  });

  test("a service's endpoints share the sessions, a host name is looked up, IPv6 clients have their own sessions", async () => {
    await using one = await echo("one");
    const services = [{ name: "dns", namespace: "default", hostname: "dns.local", ports: { 53: one.port } }];
    const workloads = [
      { uid: "w", name: "w", namespace: "default", workloadIps: ["127.0.0.1"], services: { "default/dns.local": {} } },
    ];
    const service = { name: "default/dns.local", port: 53 };
    const { binds } = bind([{ service }]) as { binds: object[] };
    await using gateway = await LocalGateway.start({ binds, services, workloads });
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("q", gateway.port(BIND)), "one:q");
    await gateway.reconfigure(bind([{ host: `localhost:${one.port}` }]));
    assert.equal(await client.ask("r", gateway.port(BIND)), "one:r");
    await gateway.reconfigure(bind([{ endpoints: [{ host: one.address }] }]));
    assert.equal(await client.ask("p", gateway.port(BIND)), "one:p", "of a pool too");
    await gateway.reconfigure(bind([{ host: `localhost:${one.port}` }]));
    await using sixth = await UdpPeer.open(undefined, "::1");
    assert.equal(await sixth.ask("s", gateway.port(BIND), "::1"), "one:s");
  });

  test("an unreachable backend ends the session, and the next datagram begins another", async () => {
    const first = await echo("first");
    const { port } = first;
    await using gateway = await LocalGateway.start(bind([{ host: first.address }]));
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("1", gateway.port(BIND)), "first:1");
    await first[Symbol.asyncDispose]();
    client.send("2", gateway.port(BIND));
    const error = "upstream call failed: recvmsg ECONNREFUSED, at binds[0].listeners[0].tcpRoutes[0].backends[0]";
    await logged(gateway, { protocol: "udp", endpoint: `127.0.0.1:${port}`, reason: "UpstreamFailure", error });
    await using second = await UdpPeer.open((text) => `second:${text}`, "127.0.0.1", port);
    assert.equal(await client.ask("3", gateway.port(BIND)), "second:3");
    assert.equal(second.received.length, 1);
  });

  test("an unreachable endpoint is evicted if health is configured, one whose sessions got responses is not", async () => {
    await using alive = await echo("alive");
    const dead = await echo("dead");
    const { address } = dead;
    const services = [{ name: "dns", namespace: "default", hostname: "dns.local", ports: { 53: 53 } }];
    const workloads = [alive, dead].map(({ port }) => ({
      ...{ uid: `${port}`, name: "w", namespace: "default", workloadIps: ["127.0.0.1"] },
      services: { "default/dns.local": { 53: port } },
    }));
    await dead[Symbol.asyncDispose]();
    const policies = { health: { eviction: { duration: "1h" } } };
    const tcpRoutes = [{ name: "r", policies, backends: [{ service: { name: "default/dns.local", port: 53 } }] }];
    await using gateway = await LocalGateway.start({
      binds: [{ port: 0, listeners: [{ name: "dns", protocol: "UDP", tcpRoutes }] }],
      frontendPolicies: { udp: { idleTimeout: "300ms" } },
      services,
      workloads,
    });
    await using clients = new AsyncDisposableStack();
    for (let i = 0; i < 40; i++) clients.use(await UdpPeer.open()).send("x", gateway.port(BIND));
    await logged(gateway, { protocol: "udp", endpoint: address, reason: "UpstreamFailure" });
    await gateway.until(
      () => gateway.tasks().every(({ connections }) => connections.length === 0),
      "all sessions to end",
    );
    for (let asked = 0; asked < 20; ) {
      await using client = await UdpPeer.open();
      // The gateway drops datagrams from the address of a backend, and the port of the dead one is free for others.
      if (client.address === address) continue;
      assert.equal(await client.ask(`${asked}`, gateway.port(BIND)), `alive:${asked}`);
      asked++;
    }
  });

  test("without a usable backend datagrams are dropped and counted, and a reload that brings one is used at once", async () => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(bind([]));
    await using client = await UdpPeer.open();
    client.send("1", gateway.port(BIND));
    client.send("2", gateway.port(BIND));
    await untilDropped(gateway, "backend", 2);
    await gateway.reconfigure(bind([{ host: server.address }]));
    assert.equal(await client.ask("3", gateway.port(BIND)), "a:3");
    await logged(gateway, {
      protocol: "udp",
      route: "default/r",
      reason: "NoHealthyBackend",
      error: "no valid backends, at binds[0].listeners[0].tcpRoutes[0]",
    });
  });

  test("a reload keeps the sessions whose backend it keeps, and ends the others", async () => {
    await using kept = await echo("kept");
    await using gone = await echo("gone");
    await using gateway = await LocalGateway.start(bind([{ host: kept.address }]));
    await using client = await UdpPeer.open();
    await client.ask("1", gateway.port(BIND));
    await gateway.reconfigure(bind([{ host: gone.address, weight: 0 }, { host: kept.address }]));
    await client.ask("2", gateway.port(BIND));
    assert.equal(new Set(kept.received.map(({ port }) => port)).size, 1, "the same session");
    await gateway.reconfigure(bind([{ host: gone.address }]));
    assert.equal(await client.ask("3", gateway.port(BIND)), "gone:3");
    await gateway.reconfigure({ binds: [] });
    assert.deepEqual(gateway.tasks(), []);
  });

  test("a silent session makes room for a new client, an active one does not", async (t) => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(bind([{ host: server.address }], { udp: { maxSessions: 1 } }));
    await using first = await UdpPeer.open();
    await using second = await UdpPeer.open();
    assert.equal(await first.ask("1", gateway.port(BIND)), "a:1");
    second.send("2", gateway.port(BIND));
    await untilDropped(gateway, "sessions", 1);
    assert.equal(await first.ask("3", gateway.port(BIND)), "a:3");
    const now = performance.now();
    t.mock.method(performance, "now", () => now + 5001);
    assert.equal(await second.ask("4", gateway.port(BIND)), "a:4");
    await logged(gateway, { protocol: "udp", "src.addr": first.address, reason: "Overload" });
  });

  test("a client with many ports gives way to others, even if its sessions are active", async () => {
    await using server = await echo("a");
    await using gateway = await LocalGateway.start(bind([{ host: server.address }], { udp: { maxSessions: 8 } }));
    const port = gateway.port(BIND);
    await using clients = await openMany(8);
    for (const client of clients.all) assert.equal(await client.ask("1", port), "a:1");
    await using same = await UdpPeer.open();
    same.send("2", port);
    await untilDropped(gateway, "sessions", 1);
    await using others = await openMany(4, "127.0.0.2");
    for (const other of others.all) assert.equal(await other.ask("3", port), "a:3");
    // Now both addresses have the same number of sessions, which is more than a quarter.
    await using fifth = await UdpPeer.open(undefined, "127.0.0.2");
    fifth.send("4", port);
    await untilDropped(gateway, "sessions", 2);
    await using third = await UdpPeer.open(undefined, "127.0.0.3");
    assert.equal(await third.ask("5", port), "a:5");
  });

  test("sessions of one port give way to clients of another when no descriptor is left", async () => {
    await using server = await echo("a");
    const listeners = [{ protocol: "UDP", tcpRoutes: [{ backends: [{ host: server.address }] }] }];
    const other = await freePort();
    await using gateway = await LocalGateway.start(
      {
        binds: [
          { port: 0, listeners },
          { port: other, listeners },
        ],
      },
      { openSockets: 32 },
    );
    await using clients = await openMany(8);
    for (const client of clients.all) assert.equal(await client.ask("1", gateway.port(BIND)), "a:1");
    await using victim = await UdpPeer.open(undefined, "127.0.0.2");
    assert.equal(await victim.ask("2", other), "a:2");
    await logged(gateway, { protocol: "udp", reason: "Overload" });
  });

  test("a datagram whose source is a backend begins no session: it would answer its own answers", async () => {
    await using first = await UdpPeer.open((text) => text);
    await using second = await UdpPeer.open((text) => text);
    await using gateway = await LocalGateway.start(bind([{ host: first.address }, { host: second.address }]));
    for (let i = 1; i <= 8; i++) {
      first.send("forged", gateway.port(BIND));
      await untilDropped(gateway, "backend", i);
    }
    assert.deepEqual([first.received, second.received], [[], []]);
  });

  test("a backend that is configured by its name is recognized at all addresses of the name", async () => {
    await using servers = await openTogether(["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"]);
    const [{ port = 0 } = {}] = servers.all;
    const found = servers.all.map((_, i) => ({ address: `127.0.0.${i + 1}`, family: 4 }));
    const names: PlaneOptions["names"] = { lookup: (_host, _options, done) => done(null, found) };
    await using gateway = await LocalGateway.start(bind([{ host: `app.test:${port}` }]), { names });
    await using client = await UdpPeer.open();
    assert.equal(await client.ask("1", gateway.port(BIND)), "1");
    for (const server of servers.all) {
      server.received.length = 0;
      server.send("forged", gateway.port(BIND));
    }
    await untilDropped(gateway, "backend", servers.all.length);
    assert.deepEqual(
      servers.all.flatMap(({ received }) => received),
      [],
    );
  });

  test("network rules decide which clients can begin a session", async () => {
    await using server = await echo("a");
    const rules = ['source.address == "127.0.0.1" && destination.port > 0'];
    await using gateway = await LocalGateway.start(
      bind([{ host: server.address }], { networkAuthorization: { rules } }),
    );
    await using allowed = await UdpPeer.open();
    assert.equal(await allowed.ask("1", gateway.port(BIND)), "a:1");
    await using denied = await UdpPeer.open(undefined, "::1");
    denied.send("2", gateway.port(BIND), "::1");
    await untilDropped(gateway, "authorization", 1);
    const error = "authorization failed: no allow rule is true, at frontendPolicies.networkAuthorization.rules[0]";
    await logged(gateway, { message: "rejected", protocol: "udp", error, reason: "Authorization" });
    assert.equal(server.received.length, 1);
  });

  test("a TCP and a UDP bind can have the same port number; a port in use is reported", async () => {
    await using taken = await udpPortWithFreeTcpPort();
    const { port } = taken;
    const http = {
      port,
      listeners: [{ protocol: "HTTP", routes: [{ policies: { directResponse: { status: 204 } } }] }],
    };
    const udp = { port, listeners: [{ protocol: "UDP", tcpRoutes: [{ backends: [] }] }] };
    assert.match(
      await refusedStart({ config: { enableIpv6: false }, binds: [http, udp] }),
      new RegExp(`cannot listen on UDP port ${port} for bind/udp/${port}: the port is in use`),
    );
  });

  test("a client's datagrams reach one worker; a shutdown serves sessions until they are silent", async () => {
    await using server = await echo("a");
    await using gateway = await TestGateway.start({
      config: { workerThreads: 2, connectionMinTerminationDeadline: "0s", connectionTerminationDeadline: "10s" },
      ...bind([{ host: server.address }]),
    });
    const port = gateway.port(BIND);
    // All stay open, because the port of a closed one may become that of another, whose session it would continue.
    await using clients = new AsyncDisposableStack();
    for (let i = 0; i < 10; i++) {
      const client = clients.use(await UdpPeer.open());
      for (let j = 0; j < 5; j++) assert.equal(await client.ask(`${i}`, port), `a:${i}`);
    }
    assert.equal(new Set(server.received.map((each) => each.port)).size, 10, "each client has one session");
    await using late = await UdpPeer.open();
    await late.ask("before", port);
    const drained = gateway.drain();
    await gateway.until(() => gateway.lines.some(({ message }) => message === "draining"), "the drain");
    assert.equal(await late.ask("during", port), "a:during");
    await drained;
    assert.ok(gateway.lines.filter(({ protocol }) => protocol === "udp").length === 11, "each session is logged");
  });
});
