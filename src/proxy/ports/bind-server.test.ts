import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { type Identity, noOpenssl, TestCa } from "../../../test/helpers/certificates.ts";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { FRONTEND } from "../../../test/helpers/frontend.ts";
import {
  closedPort,
  queueOf,
  RawPeer,
  RawUpstream,
  reply,
  settled,
  statusOf,
  valuesOf,
} from "../../../test/helpers/raw-peer.ts";
import { untilTurn } from "../../../test/helpers/until.ts";
import { ms } from "../../base/durations.ts";
import type { Bind, Frontend, Listener } from "../../ir/ir.ts";
import { type PackedIr, packIr } from "../../ir/packed-ir.ts";
import { ALONE } from "./sharing.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n";
const proxyHeader = (address: string): string => `PROXY TCP4 ${address} 198.51.100.2 4000 443\r\n`;
const DENIED = "authorization failed: no allow rule is true";

let ca: TestCa;
let host: Identity;
let friend: Identity;
before(() => {
  if (noOpenssl) return;
  ca = new TestCa();
  host = ca.issue("host.example");
  friend = ca.issue("friend.example");
});
after(() => ca?.[Symbol.dispose]());

/** What kind of traffic the bind under test serves. */
type Kind = "HTTP" | "HTTPS" | "TLS" | "TCP";
const PROTOCOLS = { HTTP: "http", HTTPS: "tls", TLS: "tls", TCP: "tcp" } as const;

/** One bind whose one listener leads to `port`, by this number of equal routes. */
function configurationOf(kind: Kind, port: number, frontend: Partial<Frontend>, routes = 1): PackedIr {
  const backends = [
    { key: "b", weight: 1, target: { type: "static", host: "127.0.0.1", port }, policies: {} },
  ] as const;
  const named = { key: "r", name: "r", namespace: "default", hostnames: [], backends };
  const matches = [{ path: { type: "pathPrefix", value: "/" }, headers: [], query: [] }] as const;
  const isHttp = kind === "HTTP" || kind === "HTTPS";
  const listener: Listener = {
    key: "l",
    name: "l",
    gatewayName: "default",
    gatewayNamespace: "default",
    hostname: "",
    protocol: kind,
    policies: {},
    routes: isHttp ? Array.from({ length: routes }, (_, i) => ({ ...named, key: `r${i}`, matches, policies: {} })) : [],
    tcpRoutes: isHttp ? [] : [named],
    ...(kind === "HTTPS" && { tls: { cert: host.cert, key: host.key, clientCa: ca.cert } }),
  };
  const bind: Bind = {
    key: "bind/0",
    host: "127.0.0.1",
    port: 0,
    protocol: PROTOCOLS[kind],
    tunnelProtocol: "direct",
    mode: "standard",
    frontend: { ...FRONTEND, ...frontend },
    listeners: [listener],
  };
  return packIr({ binds: [bind], routeGroups: [], backends: [], services: [], workloads: [], targeted: [] });
}

/** A plane with this bind. Deadlines of connections are checked every `sweepInterval` milliseconds; by default, never. */
async function startBind(
  kind: Kind,
  port: number,
  frontend: Partial<Frontend>,
  sweepInterval = 1_000_000,
): Promise<TestPlane> {
  const plane = new TestPlane({ sweepInterval });
  await plane.apply(configurationOf(kind, port, frontend));
  plane.port = (plane.plane.tasks() as { port: number }[])[0]?.port ?? 0;
  return plane;
}

interface Task {
  readonly client: string;
  readonly state: string;
  readonly exchange?: object;
}

/** Open connections of the one bind. */
function open(plane: TestPlane): readonly Task[] {
  return (plane.plane.tasks() as { connections: Task[] }[])[0]?.connections ?? [];
}

/** Makes a TLS handshake on a connection on which something may have been sent before. */
async function secure(socket: Socket, { cert, key }: Identity): Promise<RawPeer> {
  const tls: TLSSocket = connect({ socket, servername: "host.example", ca: ca.cert, cert, key });
  await once(tls, "secureConnect");
  return new RawPeer(tls);
}

const isOpen = (plane: TestPlane, state: string) => (): boolean => open(plane).some((task) => task.state === state);
const rejections = (plane: TestPlane): string[] =>
  plane.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line.message === "rejected")
    .map((line) => String(line.error));

suite("the chain of stages", { skip: noOpenssl }, () => {
  const rules = (expression: string): Partial<Frontend> => ({
    proxyProtocol: { version: "v1", mode: "strict" },
    networkAuthorization: [{ mode: "allow", expression }],
  });

  test("PROXY header, TLS, authorization: each stage knows the results of those before it", async () => {
    await using upstream = await RawUpstream.answering((request) => reply(valuesOf(request, "x-forwarded-for").join()));
    await using plane = await startBind(
      "HTTPS",
      upstream.port,
      rules('source.address == "192.0.2.7" && source.subjectCn == "friend.example" && destination.port == 443'),
    );
    for (const [address, identity, allowed] of [
      ["192.0.2.7", friend, true],
      ["192.0.2.8", friend, false],
      ["192.0.2.7", host, false],
    ] as const) {
      const raw = await RawPeer.connect(plane.port);
      raw.socket.removeAllListeners("data");
      raw.send(proxyHeader(address));
      const client = await secure(raw.socket, identity);
      client.send(REQUEST);
      if (allowed) {
        assert.equal((await client.message()).body, address);
        assert.deepEqual(
          open(plane).map((task) => task.client),
          [`${address}:4000`],
        );
      } else {
        await client.closed();
        assert.equal(client.received, "");
      }
      client.socket.destroy();
      raw.socket.destroy();
      await untilTurn(() => open(plane).length === 0, "the close of the connection");
    }
    assert.deepEqual(rejections(plane), [DENIED, DENIED]);
  });

  test("TCP and TLS passthrough use the same stages; early bytes are not lost", async () => {
    await using upstream = await RawUpstream.listen();
    await using tcp = await startBind("TCP", upstream.port, rules('source.address == "192.0.2.7"'));
    const client = await RawPeer.connect(tcp.port);
    client.send(`${proxyHeader("192.0.2.7")}early`);
    const server = await upstream.connection();
    assert.equal(await server.take("early"), "early");
    const stranger = await RawPeer.connect(tcp.port);
    stranger.send(`${proxyHeader("192.0.2.8")}early`);
    await stranger.closed();
    assert.deepEqual(rejections(tcp), [DENIED]);
    client.socket.destroy();

    await using tls = await startBind("TLS", upstream.port, rules('destination.hostname == "host.example"'));
    const passing = await RawPeer.connect(tls.port);
    passing.socket.removeAllListeners("data");
    passing.send(proxyHeader("192.0.2.7"));
    const handshake = connect({ socket: passing.socket, servername: "host.example" });
    handshake.on("error", () => {});
    const behind = await upstream.connection(1);
    await behind.until(() => behind.received.length > 5, "the ClientHello");
    // Record type 22, handshake (RFC 8446 5.1): what the client sent, untouched.
    assert.equal(behind.received.charCodeAt(0), 22);
    passing.socket.destroy();
  });
});

/** Brings a client into a stage and leaves it there. */
interface Stalled {
  readonly name: string;
  readonly kind: Kind;
  readonly state: string;
  readonly frontend: (authorizer: number) => Partial<Frontend>;
  readonly enter: (client: RawPeer) => Promise<void>;
  /** What the log says when the client leaves. */
  readonly left: string;
}

const STAGES: readonly Stalled[] = [
  {
    name: "PROXY header",
    kind: "HTTP",
    state: "proxy header",
    frontend: () => ({ proxyProtocol: { version: "v1", mode: "strict" } }),
    enter: async (client) => client.send("PROXY TCP4"),
    left: "the connection closed before a PROXY header of version 1",
  },
  {
    name: "ClientHello",
    kind: "HTTPS",
    state: "handshake",
    frontend: () => ({}),
    enter: async (client) => client.send(Buffer.from([22, 3, 1, 2])),
    left: "the connection closed during the handshake",
  },
  {
    name: "TLS handshake",
    kind: "HTTPS",
    state: "handshake",
    frontend: () => ({}),
    enter: async (client) => {
      client.send(clientHello());
      await client.until(() => client.received.length > 0, "the ServerHello");
    },
    left: "TLS handshake failed: the connection closed during the handshake",
  },
  {
    name: "authorization",
    kind: "HTTP",
    state: "authorizing",
    frontend: (port) => authorizing(port),
    enter: async (client) => client.send(REQUEST),
    left: "the connection closed before it was authorized",
  },
];

/** A ClientHello as Node's TLS sends it. */
let hello: Buffer = Buffer.alloc(0);
const clientHello = (): Buffer => hello;
before(async () => {
  const upstream = await RawUpstream.listen();
  const socket = connect({ port: upstream.port, host: "127.0.0.1", servername: "host.example" });
  socket.on("error", () => {});
  const server = await upstream.connection();
  await server.until(() => server.received.length > 5, "a ClientHello");
  hello = Buffer.from(server.received, "latin1");
  socket.destroy();
  await upstream[Symbol.asyncDispose]();
});

for (const { name, kind, state, frontend, enter, left } of STAGES) {
  suite(`in the stage ${name}`, { skip: kind === "HTTPS" && noOpenssl }, () => {
    test("a leaving client and a shutdown end the connection with one line in the log", async () => {
      // It accepts the authorization call and never responds.
      await using silent = await RawUpstream.listen();
      await using plane = await startBind(kind, silent.port, frontend(silent.port));
      for (const leave of ["end", "reset"] as const) {
        const client = await RawPeer.connect(plane.port);
        await enter(client);
        await untilTurn(isOpen(plane, state), `a connection in ${state}`);
        client[leave]();
        await untilTurn(() => open(plane).length === 0, "the close of the connection");
      }
      assert.equal(rejections(plane).length, 2);
      assert.equal(rejections(plane)[0], left);
      const last = await RawPeer.connect(plane.port);
      await enter(last);
      await untilTurn(isOpen(plane, state), `a connection in ${state}`);
      plane.plane.destroy();
      await last.closed();
      await untilTurn(() => open(plane).length === 0, "the end of all connections");
      assert.deepEqual(rejections(plane).slice(2), ["the gateway shut down before the connection was done"]);
    });
  });
}

suite("deadlines of stages", { skip: noOpenssl }, () => {
  for (const [when, bytes] of [
    ["before the ClientHello is whole", () => Buffer.from([22, 3, 1, 2])],
    ["in the middle of the handshake", clientHello],
  ] as const) {
    test(`a TLS handshake that stalls ${when} is aborted after 15 s`, async (t) => {
      await using upstream = await RawUpstream.listen();
      await using plane = await startBind("HTTPS", upstream.port, {});
      t.mock.timers.enable({ apis: ["setTimeout"] });
      const client = await RawPeer.connect(plane.port);
      client.send(bytes());
      await untilTurn(isOpen(plane, "handshake"), "the handshake");
      t.mock.timers.tick(14_999);
      assert.equal(open(plane).length, 1);
      t.mock.timers.tick(1);
      await untilTurn(() => open(plane).length === 0, "the end of the handshake");
      t.mock.timers.reset();
      assert.deepEqual(rejections(plane), ["the TLS handshake took too long"]);
      await client.closed();
    });
  }
});

/** A port on which the authorization service at `port` decides about each connection. */
const authorizing = (port: number): Partial<Frontend> => ({
  networkExtAuthz: {
    target: { type: "static", host: "127.0.0.1", port },
    policies: {},
    protocol: { http: { addRequestHeaders: {}, metadata: {} } },
    failureMode: "deny",
    timeout: ms(600_000),
  },
});

suite("limits of stages", () => {
  test("a connection that waits for its authorization is read up to the limit for held bytes; nothing is lost", async () => {
    await using service = await RawUpstream.listen();
    await using upstream = await RawUpstream.listen();
    await using plane = await startBind("TCP", upstream.port, authorizing(service.port));
    const client = await RawPeer.connect(plane.port);
    const bytes = 32 * 1024 * 1024;
    client.send(Buffer.alloc(bytes, "x"));
    const decision = await service.connection();
    await decision.take("\r\n\r\n");
    await settled(() => queueOf(client));
    assert.ok(queueOf(client) > 0, "the system's buffers are full");
    decision.send(reply(""));
    const server = await upstream.connection();
    await server.until(() => server.received.length === bytes, "all that was sent");
    client.reset();
  });

  test("an endless ClientHello is rejected", { skip: noOpenssl }, async () => {
    await using plane = await startBind("HTTPS", await closedPort(), {});
    const client = await RawPeer.connect(plane.port);
    // Records of a handshake message that says it is 16 MiB long (RFC 8446 4, 5.1).
    const record = Buffer.concat([Buffer.from([22, 3, 1, 0x40, 0]), Buffer.alloc(0x4000)]);
    const first = Buffer.from(record);
    first.set([1, 0xff, 0xff, 0xff], 5);
    client.send(Buffer.concat([first, ...Array.from({ length: 16 }, () => record)]));
    await client.closed();
    await untilTurn(() => open(plane).length === 0, "the close of the connection");
    assert.equal(rejections(plane).length, 1);
  });
});

suite("drain", () => {
  test("a connection that ends in a stage, or is rejected by one, ends the wait for the last connection", async () => {
    for (const end of ["client", "service"] as const) {
      await using service = await RawUpstream.listen();
      await using plane = await startBind("HTTP", await closedPort(), authorizing(service.port));
      const idle = await RawPeer.connect(plane.port);
      const decision = await service.connection();
      await decision.take("\r\n\r\n");
      decision.send(reply(""));
      await untilTurn(isOpen(plane, "idle"), "the connection that is let in");
      const client = await RawPeer.connect(plane.port);
      await decision.take("\r\n\r\n");
      const drained = plane.drain(0);
      // The last step closes it, and then waits.
      await idle.closed();
      await untilTurn(() => open(plane).length === 1, "the connection in its stage");
      if (end === "client") client.reset();
      else decision.send(reply("", [], "403 Forbidden"));
      await drained;
      assert.deepEqual(rejections(plane).length, 1);
    }
  });

  test("a bind that leaves the configuration asks its clients to leave and waits for them", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await startBind("HTTP", upstream.port, {});
    const busy = await RawPeer.connect(plane.port);
    busy.send(REQUEST);
    const server = await upstream.connection();
    await server.take("\r\n\r\n");
    await plane.configure(undefined);
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla");
    assert.match(await busy.take("\r\n\r\n"), /\r\nconnection: close\r\n/);
    let drained = false;
    const drain = plane.drain(0).then(() => {
      drained = true;
    });
    for (let turn = 0; turn < 1000; turn++) await new Promise(setImmediate);
    assert.equal(drained, false, "the response is in progress");
    server.send("te");
    await busy.take("late");
    assert.equal(await busy.closed(), "end");
    busy.end();
    await drain;
  });

  test("idle connections close, busy ones close after the response; none is cut in any stage", async () => {
    await using upstream = await RawUpstream.listen();
    await using plane = await startBind("HTTP", upstream.port, {
      proxyProtocol: { version: "v1", mode: "strict" },
    });
    const [idle, busy, arriving] = [
      await RawPeer.connect(plane.port),
      await RawPeer.connect(plane.port),
      await RawPeer.connect(plane.port),
    ];
    idle.send(proxyHeader("192.0.2.1"));
    busy.send(proxyHeader("192.0.2.2") + REQUEST);
    arriving.send("PROXY ");
    const server = await upstream.connection();
    await server.take("\r\n\r\n");
    await untilTurn(() => open(plane).length === 3 && isOpen(plane, "idle")(), "three connections");
    assert.deepEqual(
      open(plane)
        .filter((task) => task.exchange !== undefined)
        .map((task) => task.client),
      ["192.0.2.2:4000"],
    );
    const drained = plane.drain(2000);
    assert.equal(await idle.closed(), "end");
    arriving.send(proxyHeader("192.0.2.3").slice("PROXY ".length) + REQUEST);
    const second = await upstream.connection(1);
    await second.take("\r\n\r\n");
    for (const [peer, client] of [
      [server, busy],
      [second, arriving],
    ] as const) {
      peer.send(reply("late"));
      const message = await client.message();
      assert.equal(statusOf(message), 200);
      assert.deepEqual(valuesOf(message, "connection"), ["close"]);
      assert.equal(await client.closed(), "end");
      client.end();
    }
    await drained;
    assert.equal(open(plane).length, 0);
  });
});

suite("a configuration that is dropped", () => {
  test("after prepare: its ports close, and its endpoints are released", async () => {
    await using plane = new TestPlane();
    const [port, backend] = [await closedPort(), await closedPort()];
    await plane.plane.prepare(1, configurationOf("HTTP", backend, {}), { "bind/0": port }, ALONE);
    const early = await RawPeer.connect(port);
    assert.equal(plane.endpoints.stats().length, 1);
    plane.plane.abort();
    await early.closed();
    await assert.rejects(RawPeer.connect(port), /ECONNREFUSED/);
    assert.equal(plane.endpoints.stats().length, 0);
  });

  test("while it is compiled: the command rejects, and everything is released", async (t) => {
    await using plane = new TestPlane();
    let now = 0;
    // Every check of the clock is past the end of a slice.
    t.mock.method(performance, "now", () => ++now * 10);
    const prepared = plane.plane.prepare(1, configurationOf("HTTP", await closedPort(), {}, 100), {}, ALONE);
    plane.plane.abort();
    await assert.rejects(prepared, /discarded while it was being compiled/);
    plane.plane.commit();
    assert.deepEqual(plane.plane.tasks(), []);
    assert.equal(plane.endpoints.stats().length, 0);
  });
});

test("TCP: a half-closed connection on which nothing moves ends after streamIdleTimeout; an open one may be silent", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await startBind("TCP", upstream.port, { streamIdleTimeout: 20 }, 5);
  const [silent, ending] = [await RawPeer.connect(plane.port), await RawPeer.connect(plane.port)];
  await upstream.connection(1);
  ending.end();
  await ending.closed();
  await untilTurn(() => open(plane).length === 1, "the end of one connection");
  assert.equal(silent.ended, undefined);
  const line = await plane.logged("no progress");
  assert.equal(line.error, "no progress for too long");
  assert.equal(line.reason, "Timeout", "the backend has not ended its side");
  silent.reset();
});

test("TCP: a client that keeps its side open after the backend has ended is the one that was too slow", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await startBind("TCP", upstream.port, { streamIdleTimeout: 20 }, 5);
  const client = await RawPeer.connect(plane.port);
  (await upstream.connection()).end();
  await client.closed();
  const line = await plane.logged("no progress");
  assert.equal(line.reason, "InvalidRequest");
});
