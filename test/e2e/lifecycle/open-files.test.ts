import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { GatewayProcess, proxyTo } from "../../helpers/gateway.ts";
import { UdpPeer } from "../../helpers/udp-peer.ts";
import { call, Upstream } from "../trace/support.ts";

/** Of the process; more than it needs without clients. */
const OPEN_FILES = 300;

test("clients that use up their connections leave readiness, metrics and backends reachable", async (t) => {
  const upstream = await Upstream.start();
  const clients: Socket[] = [];
  t.after(async () => {
    for (const client of clients) client.destroy();
    await upstream.close();
  });
  await using gateway = await GatewayProcess.start(proxyTo(upstream.address), { openFiles: OPEN_FILES });
  const early = gateway.lines.find(({ message }) => /may have 300 open files/.test(String(message)));
  assert.equal(early?.level, "warn", "the gateway says at its start that the limit is too small");
  assert.match(String(early?.message), /LimitNOFILE.*--ulimit/);
  for (let i = 0; i < OPEN_FILES; i++) {
    const client = connect(gateway.port(), "127.0.0.1");
    client.on("error", () => undefined).resume();
    clients.push(client);
    await once(client, "connect");
  }
  await gateway.until(
    () => gateway.lines.some(({ level, message }) => level === "warn" && /ulimit -n/.test(String(message))),
    "the warning",
  );
  assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
  assert.equal((await fetch(`${gateway.url("stats")}/metrics`)).status, 200);
  const served = clients[0] as Socket;
  const answer = once(served, "data");
  const closed = once(served, "close");
  served.write("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  assert.match(String(await answer), /^HTTP\/1\.1 200 /);
  await closed;
  // The gateway may detect the close a moment later than the client.
  const deadline = Date.now() + 30_000;
  let status: number | undefined;
  while (status === undefined) {
    status = await call(gateway.port(), {}).then(
      (each) => each.status,
      () => undefined,
    );
    assert.ok(Date.now() < deadline, "a connection that closes makes no room");
  }
  assert.equal(status, 200);
});

test("requests that use up the open files leave readiness and metrics reachable, and end with 503", async (t) => {
  const held: Socket[] = [];
  const silent = createServer((socket) => held.push(socket.on("error", () => undefined)));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const policies = { http: { version: "HTTP/1.1" } };
  const routes = [{ backends: [{ host: `127.0.0.1:${port}`, policies }] }];
  await using gateway = await GatewayProcess.start(
    { binds: [{ port: 0, listeners: [{ protocol: "HTTP", routes }] }] },
    { openFiles: OPEN_FILES },
  );
  const clients = Array.from({ length: 6 }, () =>
    connectHttp2(`http://127.0.0.1:${gateway.port()}`).on("error", () => undefined),
  );
  t.after(() => {
    for (const client of clients) client.destroy();
    for (const socket of held) socket.destroy();
    silent.close();
  });
  const statuses: unknown[] = [];
  // Each asks for a hundred connections to the backend.
  for (const client of clients)
    for (let i = 0; i < 100; i++) {
      const stream = client.request({ ":path": "/" });
      stream.on("error", () => undefined).once("response", (head) => statuses.push(head[":status"]));
    }
  await gateway.until(
    () =>
      gateway.lines.some(({ level, message }) => level === "warn" && /ulimit -n.* to backends/.test(String(message))),
    "the warning",
  );
  assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
  const metrics = await gateway.metricsText();
  const [, open] = /^process_open_fds (\d+)$/m.exec(metrics) ?? [];
  assert.ok(Number(open) > OPEN_FILES / 2 && Number(open) < OPEN_FILES, `${open} are open`);
  assert.match(metrics, new RegExp(`^process_max_fds ${OPEN_FILES}$`, "m"));
  assert.ok(statuses.length > 0 && statuses.every((status) => status === 503), String(new Set(statuses)));
});

test("clients of UDP that use up the open files leave readiness reachable, and their datagrams are dropped", async (t) => {
  await using backend = await UdpPeer.open((text) => text);
  const listeners = [{ protocol: "UDP", tcpRoutes: [{ backends: [{ host: backend.address }] }] }];
  await using gateway = await GatewayProcess.start({ binds: [{ port: 0, listeners }] }, { openFiles: OPEN_FILES });
  const clients: UdpPeer[] = [];
  t.after(() => Promise.all(clients.map((client) => client[Symbol.asyncDispose]())));
  for (let i = 0; i < OPEN_FILES; i++) {
    const client = await UdpPeer.open();
    clients.push(client);
    client.send("hello", gateway.port("bind/udp/0"));
  }
  await gateway.until(
    () => gateway.lines.some(({ level, message }) => level === "warn" && /ulimit -n/.test(String(message))),
    "the warning",
  );
  assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
  assert.match(await gateway.metricsText(), /udp_dropped_datagrams_total\{.*reason="sessions"\} [1-9]/);
});
