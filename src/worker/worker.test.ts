import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { answering, irOf, WORKER } from "../../test/helpers/supervisor.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import { createCounts } from "../policies/request-counts/request-counts.ts";
import { sessionMemory } from "../policies/shared-sessions/shared-sessions.ts";
import { TokenBuckets } from "../policies/token-buckets/buckets.ts";
import { MemoryPressure } from "../proxy/overload/memory-pressure.ts";
import { TicketSecrets } from "../tls/ticket-keys.ts";
import { TraceGate } from "../trace/gate.ts";
import type { WorkerOptions } from "./messages.ts";
import { probePorts } from "./ports.ts";
import { WorkerError, WorkerHandle } from "./worker-handle.ts";
import { WorkerThreads } from "./worker-threads.ts";

/** One worker thread without a supervisor: the test sends its commands. */
class TestWorker {
  readonly handle: WorkerHandle;
  readonly gate = new TraceGate();
  readonly own = new OwnSockets(OwnSockets.memoryFor(2));
  readonly traced: (string | undefined)[] = [];
  log = "";

  constructor(options: Partial<WorkerOptions> = {}) {
    const shared = {
      buckets: new TokenBuckets().memory,
      requestCounts: createCounts(1),
      tickets: new TicketSecrets().memory,
      oidcSessions: sessionMemory(),
    };
    const own = {
      ...shared,
      gate: this.gate.buffer,
      pressure: new MemoryPressure(1).memory,
      ownSockets: this.own.memory,
    };
    this.handle = new WorkerHandle(
      new WorkerThreads(1).take(0),
      { ...WORKER, ...own, index: 0, ...options },
      {
        onTrace: (_id, event) => this.traced.push(event?.json),
        onFollowed() {},
        onEvicted() {},
        onDocumentWanted() {},
        onHealth() {},
        onNames() {},
        onExport() {},
        onExit() {},
        onLog: (lines) => {
          this.log += Buffer.from(lines).toString();
        },
      },
    );
  }

  /** Prepares a configuration; resolves with its port. */
  async prepare(generation: number, body: string): Promise<number> {
    const configuration = answering(body);
    const { ports, release } = await probePorts(configuration.frame.binds, {}, WORKER.reusePort, this.own);
    try {
      await this.handle.call("prepare", { inherited: {}, generation, configuration, ports });
    } finally {
      release();
    }
    return Object.values(ports)[0] ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.handle.stop();
  }
}

function get(port: number): Promise<string> {
  return fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }).then((response) => response.text());
}

test("a prepared configuration serves after commit; after abort there is nothing to commit", async () => {
  await using worker = new TestWorker();
  const { handle } = worker;
  const port = await worker.prepare(1, "first");
  await handle.call("commit", undefined);
  assert.equal(await get(port), "first");

  const configuration = answering("second");
  const ports = { [configuration.frame.binds[0]?.key ?? ""]: port };
  await handle.call("prepare", { inherited: {}, generation: 2, configuration, ports });
  await handle.call("abort", undefined);
  await handle.call("commit", undefined);
  assert.equal(await get(port), "first");

  await handle.call("prepare", { inherited: {}, generation: 3, configuration, ports });
  await handle.call("commit", undefined);
  assert.equal(await get(port), "second");
});

test("a failed command rejects with the worker's message, and the worker continues", async () => {
  await using worker = new TestWorker();
  await assert.rejects(
    worker.handle.call("logFilter", { filter: "loud" }),
    (error) => error instanceof WorkerError && error.message.includes('"loud" is not a level'),
  );
  assert.deepEqual(await worker.handle.call("tasks", undefined), []);
});

test("logs of the last requests arrive before the reply to destroy, which counts the connections that it cut", async () => {
  await using worker = new TestWorker({ logFilter: "info" });
  const port = await worker.prepare(1, "served");
  await worker.handle.call("commit", undefined);
  const client = connect(port, "127.0.0.1");
  client.write("GET /last HTTP/1.1\r\nHost: a.test\r\n\r\n");
  await once(client, "data");
  const closed = once(client.resume(), "close");
  assert.equal(await worker.handle.call("destroy", undefined), 1);
  assert.match(worker.log, /"\/last"/);
  await closed;
});

test("a watcher traces one request, as JSON events and an end; other requests are not traced", async () => {
  await using worker = new TestWorker();
  const { handle, gate } = worker;
  const port = await worker.prepare(1, "served");
  await handle.call("commit", undefined);
  const options = { reveal: false, maxBodyBytes: 0 };
  await handle.call("watch", { id: 7, slot: 0, filter: { functions: "" }, options });
  gate.arm(0);
  await get(port);
  await get(port);
  // Messages keep their order: when this reply has arrived, so have the events.
  await handle.call("tasks", undefined);
  const types = worker.traced.map((event) => (event === undefined ? "end" : JSON.parse(event).message.type));
  assert.equal(types[0], "requestStarted");
  assert.deepEqual(types.slice(-2), ["requestFinished", "end"]);
  assert.equal(types.filter((type) => type === "requestStarted").length, 1);

  await handle.call("watch", { id: 8, slot: 1, filter: { functions: "" }, options });
  await handle.call("unwatch", { id: 8 });
  gate.arm(1);
  worker.traced.length = 0;
  await get(port);
  await handle.call("tasks", undefined);
  assert.deepEqual(worker.traced, []);
});

test("statistics of endpoints and calls are those of the backends that requests used", async () => {
  await using worker = new TestWorker();
  const { handle } = worker;
  const backendPort = await worker.prepare(1, "backend");
  await handle.call("commit", undefined);
  await using front = new TestWorker();
  const configuration = irOf({
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${backendPort}` }] }] }] }],
  });
  const { ports, release } = await probePorts(configuration.frame.binds, {}, WORKER.reusePort, new OwnSockets());
  await front.handle.call("prepare", { inherited: {}, generation: 1, configuration, ports });
  release();
  await front.handle.call("commit", undefined);
  for (let i = 0; i < 3; i++) assert.equal(await get(Object.values(ports)[0] ?? 0), "backend");
  const endpoints = await front.handle.call("endpoints", {});
  assert.deepEqual(
    endpoints.map(({ target, total }) => [target, total]),
    [[`127.0.0.1:${backendPort}`, 3]],
  );
  const calls = await front.handle.call("calls", undefined);
  assert.deepEqual([...calls.values()], [3]);
});

test("a CPU profile ends under the id it was started with; an unknown id has none", async () => {
  await using worker = new TestWorker();
  const { handle } = worker;
  await handle.call("cpuStart", { id: 1, frequency: 100 });
  assert.equal(await handle.call("cpuStop", { id: 2 }), undefined);
  assert.ok((await handle.call("cpuStop", { id: 1 }))?.nodes.length);
  assert.equal(await handle.call("cpuStop", { id: 1 }), undefined);
  assert.ok((await handle.call("heap", undefined)).head);
  assert.ok((await handle.call("memory", undefined)).heap_used);
});
