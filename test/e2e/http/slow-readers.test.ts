import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { after, before, beforeEach, suite, test } from "node:test";
import { INITIAL_WINDOW_SIZE, MAX_WINDOW } from "../../../src/http/h2/frames.ts";
import { collectGarbage } from "../../../src/net/node-internals.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawPeer } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const STREAMS = 80;
/** Less than the streams hold. The gateway keeps buffers of 1 MiB to use them again. */
const KEPT_BYTES = STREAMS * 32 * 1024;
const PIECE = Buffer.alloc(64 * 1024, "x");
const ENDLESS = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
const EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/** `/endless` sends for as long as it may, `/ticks` when the test says so, everything else is answered with `hello`. */
class Backend {
  readonly endless = new Set<Socket>();
  ticks: Socket | undefined;
  readonly server: Server;

  constructor() {
    this.server = createServer((socket) => {
      socket.on("error", () => {}).on("close", () => this.endless.delete(socket));
      socket.on("data", (bytes) => this.#answer(socket, bytes.toString("latin1").split(" ")[1] ?? ""));
    });
  }

  get port(): number {
    return (this.server.address() as { readonly port: number }).port;
  }

  #answer(socket: Socket, path: string): void {
    if (path === "/endless") {
      this.endless.add(socket);
      socket.write(ENDLESS);
      const more = (): void => {
        while (socket.write(PIECE));
      };
      socket.on("drain", more);
      more();
    } else if (path === "/ticks") {
      this.ticks = socket;
      socket.write(EVENTS);
    } else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  }
}

/** Bytes in buffers of the whole test, without garbage. */
function buffered(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

suite("clients that do not read", () => {
  let backend: Backend;
  let gateway: LocalGateway;
  /** Bytes in buffers before the first test. */
  let base: number;

  const config = (streamIdleTimeout: string): object => {
    // Else clients of HTTP/2 without TLS would be served by it.
    const backends = [{ host: `127.0.0.1:${backend.port}`, policies: { http: { version: "HTTP/1.1" } } }];
    return {
      frontendPolicies: { http: { streamIdleTimeout } },
      binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
    };
  };
  /** What does not move ends soon. Before that, a test takes its time to see what is held. */
  const losePatience = (): Promise<void> => gateway.reconfigure(config("1s"));

  before(async () => {
    backend = new Backend();
    await once(backend.server.listen(0, "127.0.0.1"), "listening");
    gateway = await LocalGateway.start(config("10m"));
    base = buffered();
  });
  beforeEach(async () => {
    await gateway.reconfigure(config("10m"));
    await until(() => buffered() - base < KEPT_BYTES);
  });
  after(async () => {
    await gateway[Symbol.asyncDispose]();
    backend.server.close();
  });

  test("HTTP/1.1: the response is broken off and its upstream let go; others are served", async () => {
    const other = await RawPeer.connect(gateway.port());
    const deaf = await RawPeer.connect(gateway.port());
    deaf.socket.pause();
    await losePatience();
    deaf.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    await until(() => backend.endless.size === 1);
    let answers = 0;
    while (backend.endless.size > 0) {
      other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      assert.equal((await other.message()).body, "hello");
      answers++;
    }
    assert.ok(answers > 0);
    const line = gateway.lines.find((each) => each["http.path"] === "/endless");
    assert.equal(line?.error, "request timeout: no progress for too long");
    deaf.socket.resume();
    await deaf.closed();
    other.socket.destroy();
  });

  for (const [name, settings, deaf] of [
    ["windows of a byte", [INITIAL_WINDOW_SIZE, 1], false],
    ["open windows of which nothing is read", [INITIAL_WINDOW_SIZE, MAX_WINDOW], true],
  ] as const)
    test(`HTTP/2, ${name}: the streams end, their memory is free again, and others go on`, async () => {
      const client = await H2Client.connect(gateway.port(), settings);
      if (deaf) client.credit(0, MAX_WINDOW - 65_535);
      const neighbour = deaf ? await H2Client.connect(gateway.port()) : client;
      const ticking = 1;
      const slow = (n: number): number => 2 * n + 3;
      const later = slow(STREAMS);
      neighbour.request(ticking, "GET", [], "/ticks");
      neighbour.credit(ticking, 60_000);
      await until(() => backend.ticks !== undefined);
      if (deaf) client.peer.socket.pause();
      for (let i = 0; i < STREAMS; i++) client.request(slow(i), "GET", [], "/endless");
      await until(() => backend.endless.size === STREAMS);
      // Each stream keeps what its source had sent when it was paused.
      await until(() => buffered() - base > STREAMS * 64 * 1024);
      await losePatience();

      // A stream that moves is not given up beside them.
      let ticks = 0;
      while (backend.endless.size > 0) {
        backend.ticks?.write("1\r\n.\r\n");
        ticks++;
        await neighbour.until(() => neighbour.stream(ticking).body.length >= ticks, "a tick");
      }
      backend.ticks?.write("0\r\n\r\n");
      assert.equal((await neighbour.response(ticking)).body.length, ticks);
      await until(() => buffered() - base < KEPT_BYTES);
      if (!deaf)
        for (let i = 0; i < STREAMS; i++) {
          const { reset, body } = await client.response(slow(i));
          assert.deepEqual([reset, body], ["CANCEL", "x"]);
        }
      neighbour.request(later);
      neighbour.credit(later, 100);
      assert.equal((await neighbour.response(later)).body, "hello");
      assert.deepEqual(neighbour.goAways, []);
      for (const each of [client, neighbour]) each.peer.socket.destroy();
      backend.ticks = undefined;
    });
});
