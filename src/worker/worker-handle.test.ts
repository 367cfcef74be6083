import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { TestSupervisor, WORKER } from "../../test/helpers/supervisor.ts";
import { WorkerError, WorkerHandle } from "./worker-handle.ts";
import { WorkerThreads } from "./worker-threads.ts";

test("a call to a dead worker rejects at once", async () => {
  await using workers = new TestSupervisor(1);
  const [handle] = workers.supervisor.workers;
  await workers.known();
  await workers.end("worker-0");
  await assert.rejects(async () => handle?.call("tasks", undefined), WorkerError);
});

test("a worker that does not reply in time is ended", async (t: TestContext) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const memory = (): SharedArrayBuffer => new SharedArrayBuffer(4096);
  const buffers = {
    gate: memory(),
    buckets: memory(),
    requestCounts: memory(),
    tickets: memory(),
    oidcSessions: memory(),
    pressure: memory(),
    ownSockets: memory(),
  };
  const ended = Promise.withResolvers<Error | undefined>();
  const events = {
    onTrace() {},
    onFollowed() {},
    onEvicted() {},
    onHealth() {},
    onNames() {},
    onDocumentWanted() {},
    onLog() {},
    onExport() {},
  };
  const handle = new WorkerHandle(
    new WorkerThreads(1).take(0),
    { ...WORKER, ...buffers, index: 0 },
    { ...events, onExit: (_handle, error) => ended.resolve(error) },
  );
  const aborted = handle.callWithDeadline("abort", undefined);
  // The thread has not started yet, which looks the same as one that hangs.
  t.mock.timers.tick(60_000);
  await assert.rejects(aborted, { message: "worker-0 did not reply within 60 s" });
  assert.equal((await ended.promise)?.message, "worker-0 did not reply within 60 s");
});
