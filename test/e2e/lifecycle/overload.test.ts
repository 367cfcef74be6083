import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { appRoot } from "../../../src/base/app-root.ts";
import { GatewayProcess, proxyTo } from "../../helpers/gateway.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

/** Close to the largest head that is allowed: 54 KiB of the worker's heap for as long as the request lasts. */
const FIELDS = Array.from({ length: 90 }, (_, i) => `x-f${i}: ${"v".repeat(600)}\r\n`).join("");
const LARGE = `GET / HTTP/1.1\r\nHost: a\r\n${FIELDS}\r\n`;
/** A heap of 48 MiB has room for 600 of them. */
const SMALL_HEAP = { NODE_OPTIONS: "--max-old-space-size=48" };
const CLIENTS = 1200;

interface Client {
  readonly socket: Socket;
  received: string;
  closed: boolean;
}

function open(port: number, text: string): Client {
  const client: Client = { socket: connect(port, "127.0.0.1"), received: "", closed: false };
  client.socket.on("data", (bytes) => {
    client.received += bytes.toString("latin1");
  });
  client.socket.on("error", () => {});
  client.socket.on("close", () => {
    client.closed = true;
  });
  client.socket.write(text);
  return client;
}

test("a worker survives a load on a hanging backend that would exhaust its heap without the limit", async () => {
  const held: Socket[] = [];
  const backend = createServer((socket) => {
    socket.on("error", () => {}).resume();
    held.push(socket);
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  const { port } = backend.address() as { readonly port: number };
  const clients: Client[] = [];
  try {
    // With `overload: { heapShare: 0 }` the worker dies of these clients.
    await using gateway = await GatewayProcess.start(proxyTo(`127.0.0.1:${port}`), { env: SMALL_HEAP });
    const overloaded = (): boolean => gateway.lines.some(({ message }) => /heap .* almost full/.test(String(message)));
    for (let i = 0; i < CLIENTS; i++) {
      clients.push(open(gateway.port(), LARGE));
      if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await gateway.until(overloaded, "the overload");
    await until(() => clients.some(({ closed }) => closed), "a connection to be turned away");
    assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
    assert.match(await gateway.metricsText(), /overload_rejected_total\{kind="connection",reason="heap"\} [1-9]/);

    // Every request that was taken is finished.
    const taken = held.length;
    assert.ok(taken > 100);
    const finished = (): number => clients.filter(({ received }) => received.startsWith("HTTP/1.1 200")).length;
    for (const socket of held) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    await until(() => finished() >= taken, "the responses");
    backend.on("connection", (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    await gateway.until(
      () => gateway.lines.some(({ message, reason }) => message === "no longer overloaded" && reason === "heap"),
      "the end of the overload",
    );
    const later = open(gateway.port(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    clients.push(later);
    await until(() => later.received !== "", "a response");
    assert.match(later.received, /^HTTP\/1\.1 200/);
    assert.ok(!gateway.lines.some(({ message }) => /worker died/.test(String(message))));
  } finally {
    for (const { socket } of clients) socket.destroy();
    for (const socket of held) socket.destroy();
    backend.close();
  }
});

test("while the event loop is late, a share of the requests is turned away; others are finished", async () => {
  const finish = Promise.withResolvers<void>();
  await using upstream = await RawUpstream.answering(async ({ start }) => {
    if (start.includes("/long")) await finish.promise;
    return reply("answered");
  });
  // Far from what a busy machine adds, and less than a turn takes beyond the time between two samples.
  const settings = { workerThreads: 1, overload: { maxEventLoopLag: "100ms" } };
  const helper = pathToFileURL(`${appRoot}test/helpers/blocked-worker.ts`).href;
  const config = { ...proxyTo(`127.0.0.1:${upstream.port}`), config: settings };
  await using gateway = await GatewayProcess.start(config, { env: { NODE_OPTIONS: `--import ${helper}` } });
  const ask = async (path: string) => {
    const client = await RawPeer.connect(gateway.port());
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    return client;
  };
  const long = await ask("/long");
  await upstream.connection();

  gateway.process.kill("SIGUSR2");
  const statuses = new Set<number>();
  // At first a fifth of the requests; all others are served.
  while (!statuses.has(503)) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const client = await ask("/");
        return client.message();
      }),
    );
    for (const answer of answers) {
      statuses.add(statusOf(answer));
      if (statusOf(answer) === 200) continue;
      assert.equal(answer.body, "the gateway is overloaded");
      assert.deepEqual(valuesOf(answer, "retry-after"), ["2"]);
    }
  }
  assert.ok([...statuses].every((status) => status === 200 || status === 503));
  assert.match(await gateway.metricsText(), /overload_rejected_total\{kind="request",reason="lag"\} [1-9]/);
  finish.resolve();
  assert.equal(statusOf(await long.message()), 200);

  gateway.process.kill("SIGUSR2");
  await gateway.until(
    () => gateway.lines.some(({ message, reason }) => message === "no longer overloaded" && reason === "lag"),
    "the end of the overload",
  );
  const later = await ask("/");
  assert.equal(statusOf(await later.message()), 200);
});
