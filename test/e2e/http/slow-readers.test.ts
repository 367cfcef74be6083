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
/** Less than what the streams hold; more than the 1 MiB of buffers that the gateway keeps for reuse. */
const KEPT_BYTES = STREAMS * 32 * 1024;
const PIECE = Buffer.alloc(64 * 1024, "x");
const ENDLESS = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
const EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/** `/endless` sends as fast as it can, `/ticks` when the test writes to `ticks`; everything else gets `hello`. */
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
    // Otherwise requests that arrive over HTTP/2 without TLS would be forwarded over HTTP/2.
    const backends = [{ host: `127.0.0.1:${backend.port}`, policies: { http: { version: "HTTP/1.1" } } }];
    return {
      frontendPolicies: { http: { streamIdleTimeout } },
      binds: [{ port: 0, listeners: [{ routes: [{ backends }] }] }],
    };
  };
  /** From now on, streams without progress end within two seconds. Before, a test has time to measure what they hold. */
  const losePatience = (): Promise<unknown> => gateway.reconfigure(config("1s"));

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

  test("HTTP/1.1: the response is aborted and its upstream connection closed; others are served", async () => {
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
    assert.equal(line?.error, "request timeout: no progress for too long, at frontendPolicies.http");
    deaf.socket.resume();
    await deaf.closed();
    other.socket.destroy();
  });

  for (const [name, settings, deaf] of [
    ["windows of a byte", [INITIAL_WINDOW_SIZE, 1], false],
    ["open windows of which nothing is read", [INITIAL_WINDOW_SIZE, MAX_WINDOW], true],
  ] as const)
    test(`HTTP/2, ${name}: the streams end and release their memory, and others continue`, async () => {
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

      // A stream that makes progress is kept. It must do so from before the timeout becomes shorter, since it may have been idle
      // for longer than that already.
      let ticks = 0;
      const tick = async (): Promise<void> => {
        backend.ticks?.write("1\r\n.\r\n");
        ticks++;
        await neighbour.until(() => neighbour.stream(ticking).body.length >= ticks, "a tick");
      };
      await tick();
      const impatient = losePatience();
      while (backend.endless.size > 0) await tick();
      await impatient;
      backend.ticks?.write("0\r\n\r\n");
      const { reset, body } = await neighbour.response(ticking);
      assert.deepEqual([reset, body.length], [undefined, ticks]);
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
