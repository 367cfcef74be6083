import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import type { Worker } from "node:worker_threads";
import { loadConfig } from "../../../src/config/load.ts";
import type { MetricsSnapshot } from "../../../src/telemetry/metrics.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { Supervisor } from "../../../src/worker/supervisor.ts";
import { proxyTo } from "../../helpers/gateway.ts";
import { rawClient, Upstream } from "../trace/support.ts";

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;

/** A trace's reader that takes everything. */
class Collector {
  readonly events: TraceEvent[] = [];
  readonly ended: Promise<void>;
  onDrain: (() => void) | undefined;
  #end: () => void = () => {};
  #waiting: { readonly type: string; readonly resolve: () => void } | undefined;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  event(json: string): boolean {
    const event = JSON.parse(json) as TraceEvent;
    this.events.push(event);
    if (event.message.type === this.#waiting?.type) this.#waiting.resolve();
    return true;
  }

  end(): void {
    this.#end();
  }

  /** Resolves with the next event of a type. */
  next(type: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { type, resolve };
    });
  }
}

suite("a worker dies", () => {
  const threads = new Map<number, Worker>();
  const deaths: string[] = [];
  let onDeath: () => void = () => {};
  let upstream: Upstream;
  let supervisor: Supervisor;
  let port: number;

  before(async () => {
    // The runtime tells of every thread: that is how the test gets hold of one to end it as a fault would.
    process.on("worker", remember);
    upstream = await Upstream.start();
    const loaded = loadConfig({ kind: "text", text: JSON.stringify(proxyTo(upstream.address)), name: "test" }, {});
    assert.ok(loaded.ok);
    const worker = {
      pool: { connectTimeout: 10_000, idleTimeout: 90_000, maxIdle: undefined, keepAliveDelay: 0 },
      lookupFamily: "All",
      sensitiveHeaders: [],
      env: {},
      place: {},
      logFilter: "error",
      logFormat: "json",
      internalSocket: "",
      metricLabels: {},
      customFunctions: "",
      reusePort: process.platform === "linux",
    } as const;
    supervisor = new Supervisor(
      { workers: 2, worker },
      {
        onLog: () => {},
        onExport: () => {},
        onWorkerDeath: (name) => {
          deaths.push(name);
          onDeath();
        },
      },
    );
    supervisor.start();
    await supervisor.apply(1, loaded.ir);
    port = Object.values(supervisor.ports)[0] ?? 0;
  });
  after(async () => {
    process.off("worker", remember);
    await supervisor.stop();
    await upstream.close();
  });

  test("connections of other workers go on, its traces end visibly, its counts stay, and it is replaced", async () => {
    const victims = await clientOf("worker-0");
    const others = await clientOf("worker-1");
    const counted = requests(supervisor.metrics());
    assert.ok(counted > 0);

    const dying = new Collector();
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0 }, dying);
    const hanging = upstream.hang("/hang");
    const calling = dying.next("backendCallStart");
    victims.write(GET("/hang"));
    await Promise.all([hanging, calling]);
    const waiting = new Collector();
    const filter = { expression: 'request.path == "/later"', functions: "" };
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0, filter }, waiting);

    let busy = true;
    const serving = (async () => {
      let answers = 0;
      while (busy) {
        others.write(GET("/other"));
        const [answer] = (await once(others, "data", { signal: AbortSignal.timeout(30_000) })) as [Buffer];
        assert.match(answer.toString(), /^HTTP\/1\.1 200 .*hello$/s);
        answers++;
      }
      return answers;
    })();
    const died = new Promise<void>((resolve) => {
      onDeath = resolve;
    });
    const cut = once(victims, "close");
    await end("worker-0");
    await Promise.all([died, cut, dying.ended]);
    assert.deepEqual(deaths, ["worker-0"]);
    const last = dying.events.at(-1);
    assert.equal(last?.severity, "error");
    assert.deepEqual(last?.message, {
      type: "requestFinished",
      status: null,
      error: "the worker that served the request has died",
    });
    assert.ok(requests(supervisor.metrics()) >= counted, "what it had counted is kept");

    const replacement = await clientOf("worker-0");
    busy = false;
    assert.ok((await serving) > 0);
    assert.equal(others.destroyed, false);

    assert.equal(waiting.events.length, 0);
    replacement.write(GET("/later"));
    await waiting.ended;
    const types = waiting.events.map(({ message }) => message.type);
    assert.equal(types[0], "requestStarted");
    assert.equal(types.at(-1), "requestFinished");
    assert.ok(requests(supervisor.metrics()) > counted);

    const again = new Collector();
    await supervisor.hub.open({ reveal: false, maxBodyBytes: 0 }, again);
    others.write(GET("/any"));
    await again.ended;
    assert.equal(again.events.filter(({ message }) => message.type === "requestStarted").length, 1);
    for (const socket of [replacement, others]) socket.destroy();
  });

  test("no request that was answered is missing from the counts of a worker that has died", async () => {
    const before = requests(supervisor.metrics());
    const client = await clientOf("worker-1");
    let answered = requests(supervisor.metrics()) - before;
    const died = new Promise<void>((resolve) => {
      onDeath = resolve;
    });
    let alive = true;
    client.on("close", () => {
      alive = false;
    });
    const counts: number[] = [];
    // Nobody has asked for counts since: what is counted here is in the worker's hands alone.
    for (let i = 0; i < 200; i++) {
      client.write(GET(`/counted/${i}`));
      await once(client, "data");
      answered++;
    }
    const ending = end("worker-1");
    while (alive) {
      counts.push(requests(supervisor.metrics()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([died, ending]);
    counts.push(requests(supervisor.metrics()));
    (await clientOf("worker-1")).destroy();
    counts.push(requests(supervisor.metrics()));
    assert.ok((counts.at(-2) ?? 0) >= before + answered, `${counts.at(-2)} of ${before} + ${answered}`);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    );
  });

  test("a configuration that comes while a worker is missing reaches its replacement", async () => {
    const loaded = loadConfig(
      {
        kind: "text",
        text: JSON.stringify({
          binds: [
            {
              port: 0,
              listeners: [
                {
                  protocol: "HTTP",
                  routes: [{ name: "d", policies: { directResponse: { status: 200, body: "second" } } }],
                },
              ],
            },
          ],
        }),
        name: "test",
      },
      {},
    );
    assert.ok(loaded.ok);
    const died = new Promise<void>((resolve) => {
      onDeath = resolve;
    });
    await end("worker-1");
    await died;
    await supervisor.apply(2, loaded.ir);
    for (const worker of ["worker-0", "worker-1"]) {
      const client = await clientOf(worker);
      client.write(GET("/x"));
      const [answer] = (await once(client, "data")) as [Buffer];
      assert.match(answer.toString(), /second$/);
      client.destroy();
    }
  });

  test("a worker that dies while it builds a configuration does not refuse it", async () => {
    const routes = Array.from({ length: 5000 }, (_, i) => ({
      name: `r${i}`,
      matches: [{ path: { exact: `/r${i}` } }],
      policies: { directResponse: { status: 200, body: "third" } },
    }));
    const text = JSON.stringify({ binds: [{ port: 0, listeners: [{ routes }] }] });
    const loaded = loadConfig({ kind: "text", text, name: "test" }, {});
    assert.ok(loaded.ok);
    const died = new Promise<void>((resolve) => {
      onDeath = resolve;
    });
    const victim = threads.get(supervisor.workers.find(({ name }) => name === "worker-0")?.threadId ?? -1);
    assert.ok(victim !== undefined);
    // Its first answer is to the first of some fifty steps.
    victim.once("message", () => void victim.terminate());
    await Promise.all([supervisor.apply(3, loaded.ir), died]);
    for (const worker of ["worker-0", "worker-1"]) {
      const client = await clientOf(worker);
      client.write(GET("/r4999"));
      const [answer] = (await once(client, "data")) as [Buffer];
      assert.match(answer.toString(), /third$/);
      client.destroy();
    }
  });

  function remember(thread: Worker): void {
    threads.set(thread.threadId, thread);
  }

  /** Ends a thread as a fault would: the supervisor has not asked for it. */
  async function end(name: string): Promise<void> {
    const handle = supervisor.workers.find((worker) => worker.name === name);
    const thread = threads.get(handle?.threadId ?? -1);
    assert.ok(thread !== undefined, name);
    await thread.terminate();
  }

  /** A keep-alive connection, used once, that this worker has accepted; waits until there is such a worker. */
  async function clientOf(name: string): Promise<Socket> {
    const deadline = Date.now() + 30_000;
    while (Date.now() < deadline) {
      const socket = await rawClient(port, GET("/first"));
      await once(socket, "data");
      const task = JSON.stringify((await supervisor.tasks())[name] ?? "");
      if (task.includes(`:${socket.localPort}"`)) return socket;
      socket.destroy();
    }
    throw new Error(`${name} accepts no connection`);
  }

  function requests(snapshot: MetricsSnapshot): number {
    return (snapshot.requests_total ?? []).reduce((sum, { value }) => sum + Number(value), 0);
  }
});
