/**
 * Preloaded into a run of the bundles by code-cache.ts (`node --require`, which threads inherit): writes the code that V8 has
 * compiled for each of them to `<bundle>.cache`. Recorded after a run, the cache holds all functions that a start needs, not only the
 * outermost one. Only the first recording of a bundle is kept: V8 drops functions that only the start has used, so later ones lack them.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import vm from "node:vm";
import { BroadcastChannel, isMainThread, threadId, Worker } from "node:worker_threads";

/** A thread that has hung must not keep the build from failing. */
const PATIENCE_MS = 5000;
const RECORD = "record";

const scripts = new Map<string, vm.Script>();
/** Carries RECORD from the main thread and, in return, the id of each thread that has recorded. */
const channel = new BroadcastChannel("code-cache");
const waiting = new Map<number, () => void>();

vm.Script = class extends vm.Script {
  constructor(code: string, options: vm.ScriptOptions) {
    super(code, options);
    if (options.filename !== undefined) scripts.set(options.filename, this);
  }
};

function record(): void {
  for (const [file, script] of scripts)
    if (!existsSync(`${file}.cache`)) writeFileSync(`${file}.cache`, script.createCachedData());
}

process.on("exit", record);
channel.onmessage = ({ data }: { data: unknown }) => {
  if (isMainThread) {
    if (typeof data === "number") waiting.get(data)?.();
  } else if (data === RECORD) {
    record();
    channel.postMessage(threadId);
  }
};
channel.unref();

if (isMainThread) {
  process.on("SIGUSR2", () => {
    record();
    channel.postMessage(RECORD);
  });
  const { terminate } = Worker.prototype;
  Worker.prototype.terminate = async function (this: Worker) {
    const recorded = new Promise<void>((resolve) => waiting.set(this.threadId, resolve));
    channel.postMessage(RECORD);
    await Promise.race([recorded, delay(PATIENCE_MS, undefined, { ref: false })]);
    return await terminate.call(this);
  };
}
