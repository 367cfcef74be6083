import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { READ_SIZE } from "../../../src/net/read-buffer.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { RawPeer, RawUpstream, reply, statusOf } from "../../helpers/raw-peer.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/** Concurrent requests, each on its own connection to the upstream. Returns those. */
async function together(plane: TestPlane, upstream: RawUpstream, count: number): Promise<RawPeer[]> {
  const clients = await Promise.all(Array.from({ length: count }, () => RawPeer.connect(plane.port)));
  for (const client of clients) client.send(GET);
  const peers = await Promise.all(clients.map((_, i) => upstream.connection(i)));
  for (const peer of peers) await peer.take("\r\n\r\n");
  for (const peer of peers) serve(peer);
  for (const peer of peers) peer.send(reply("first"));
  for (const client of clients) assert.equal(statusOf(await client.message()), 200);
  for (const client of clients) client.socket.destroy();
  return peers;
}

/** Responds to every further request with the client's port of the connection. */
function serve(peer: RawPeer): void {
  peer.socket.on("data", () => peer.send(reply(String(peer.socket.remotePort))));
}

/** Resolves when the gateway has closed `count` of the connections. */
function closed(peers: readonly RawPeer[], count: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (peers.filter(({ ended }) => ended !== undefined).length >= count) resolve();
    };
    for (const { socket } of peers) socket.on("end", look);
    look();
  });
}

async function ask(plane: TestPlane): Promise<string> {
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const { body } = await client.message();
  client.socket.destroy();
  return body;
}

const open = (peers: readonly RawPeer[]): RawPeer[] => peers.filter(({ ended }) => ended === undefined);
const portOf = (peer: RawPeer): string => String(peer.socket.remotePort);

test("poolMaxSize: idle connections beyond it are closed, the others stay in use", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port, { pool: { maxIdle: 2 } });
  const peers = await together(plane, upstream, 5);
  await closed(peers, 3);
  const kept = open(peers);
  assert.equal(kept.length, 2);
  for (let i = 0; i < 4; i++) assert.ok(kept.map(portOf).includes(await ask(plane)));
  assert.equal(open(peers).length, 2);
  assert.equal(upstream.connections.length, 5);
});

test("poolMaxSize 0: no connection outlives its request", async () => {
  await using upstream = await RawUpstream.answering(() => reply("x"));
  await using plane = await TestPlane.start(upstream.port, { pool: { maxIdle: 0 } });
  for (let i = 0; i < 3; i++) {
    await ask(plane);
    await (await upstream.connection(i)).closed();
  }
  assert.equal(upstream.connections.length, 3);
});

test("poolIdleTimeout: idle connections are closed, used ones are kept however old", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port, { pool: { idleTimeout: 1000 } });
  const peers = await together(plane, upstream, 2);
  let gone = false;
  void closed(peers, 1).then(() => {
    gone = true;
  });
  // The most recently used one is taken each time, so that the other can time out.
  const served = new Set<string>();
  while (!gone) served.add(await ask(plane));
  const [kept] = open(peers);
  assert.ok(kept !== undefined);
  assert.deepEqual([...served], [portOf(kept)]);
  assert.equal(await ask(plane), portOf(kept));
  // There are no further requests.
  await kept.closed();
  assert.equal(upstream.connections.length, 2);
});

test("a reload that drops a target closes its idle connections, and busy ones when they are done", async () => {
  await using upstream = await RawUpstream.listen();
  await using other = await RawUpstream.answering(() => reply("other"));
  await using plane = await TestPlane.start(upstream.port);
  const [idle] = await together(plane, upstream, 1);
  const idleClosed = idle?.closed();
  const client = await RawPeer.connect(plane.port);
  // Takes the idle one; the next one needs another.
  idle?.socket.removeAllListeners("data");
  const busyBytes = new Promise((resolve) => idle?.socket.once("data", resolve));
  client.send(GET);
  await busyBytes;
  await plane.configure(other.port);
  assert.equal(await ask(plane), "other");
  assert.equal(idle?.ended, undefined);
  idle?.send(reply("late"));
  assert.equal((await client.message()).body, "late");
  await idleClosed;
});

test("keepalives: the system probes silent connections, on both sides, unless they are off", {
  skip: process.platform !== "linux" && "reads /proc",
}, async () => {
  for (const on of [true, false]) {
    await using upstream = await RawUpstream.answering(() => reply("x"));
    await using plane = await TestPlane.start(upstream.port, {
      pool: { keepAliveDelay: on ? 50_000 : 0 },
      frontend: { keepalives: { enabled: on, time: 70_000 } },
    });
    const client = await RawPeer.connect(plane.port);
    client.send(GET);
    await client.message();
    const peer = await upstream.connection();
    const toUpstream = await keepAliveTimer(peer.socket.remotePort, upstream.port);
    const toClient = await keepAliveTimer(plane.port, client.socket.localPort);
    if (on) {
      assert.ok(toUpstream !== undefined && toUpstream > 40 && toUpstream <= 50, `${toUpstream} s`);
      assert.ok(toClient !== undefined && toClient > 60 && toClient <= 70, `${toClient} s`);
    } else assert.deepEqual([toUpstream, toClient], [undefined, undefined]);
    client.socket.destroy();
  }
});

/** Seconds until the system probes the connection between two ports of this machine; undefined = never. */
async function keepAliveTimer(local: number | undefined, remote: number | undefined): Promise<number | undefined> {
  const hex = (port = 0): string => port.toString(16).toUpperCase().padStart(4, "0");
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  for (const line of tables.join("\n").split("\n")) {
    const [, from = "", to = "", , , timer = ""] = line.trim().split(/\s+/);
    if (!from.endsWith(`:${hex(local)}`) || !to.endsWith(`:${hex(remote)}`)) continue;
    const [kind, ticks = "0"] = timer.split(":");
    // 2 is the timer for keep-alive; its time is in hundredths of a second.
    return kind === "02" ? Number.parseInt(ticks, 16) / 100 : undefined;
  }
  throw new Error(`no connection from ${local} to ${remote}`);
}

test("a request that is cancelled before any of it was sent leaves the connection to the backend open", async () => {
  const methods: string[] = [];
  await using upstream = await RawUpstream.answering(({ start }) => {
    methods.push(start.split(" ", 1)[0] ?? "");
    return reply("ok");
  });
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  await using plane = await TestPlane.start([{ target, backendPolicies: { http: { version: "HTTP/1.1" } } }]);
  const client = await H2Client.connect(plane.port);
  client.request(1);
  await client.response(1);
  for (let id = 3; id < 100; id += 2) {
    client.peer.socket.cork();
    client.request(id, "POST");
    client.reset(id, 8);
    client.peer.socket.uncork();
    // One at a time: of several at once, the gateway would send some in its next turn.
    await client.settled();
  }
  client.request(101);
  await client.response(101);
  assert.deepEqual([methods, upstream.connections.length], [["GET", "GET"], 1]);
  client.peer.socket.destroy();
});

test("an upload that is cancelled after its first bytes closes the connection to the backend", async () => {
  await using upstream = await RawUpstream.listen();
  await using plane = await TestPlane.start(upstream.port);
  const uploader = await RawPeer.connect(plane.port);
  // One full read of the gateway. With the fields that it adds, it writes more than that.
  const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
  uploader.send(head + "x".repeat(READ_SIZE - head.length));
  const first = await upstream.connection();
  await first.take("\r\n\r\n");
  uploader.socket.destroy();
  await first.closed();
  const client = await RawPeer.connect(plane.port);
  client.send(GET);
  const second = await upstream.connection(1);
  assert.match(await second.take("\r\n\r\n"), /^GET \/ HTTP\/1.1/);
  client.socket.destroy();
});
