import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
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

test("a backend that hangs under load does not cost the worker its heap: it survives what would kill it", async () => {
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
    await using gateway = await TestGateway.start(proxyTo(`127.0.0.1:${port}`), { env: SMALL_HEAP });
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
