/**
 * Preloaded into a run of the bundles by code-cache.ts (`node --require`, which threads inherit): writes the code that V8 has
 * compiled for each of them to `<bundle>.cache`. After a run that is what a start needs, not only the outermost function. The
 * first recording of a bundle counts: later ones lack what only the start has needed and V8 has dropped since.
 */
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import vm from "node:vm";
import { BroadcastChannel, isMainThread, threadId, Worker } from "node:worker_threads";

/** A thread that has hung must not keep the build from failing. */
const PATIENCE_MS = 5000;
const RECORD = "record";

const scripts = new Map<string, vm.Script>();
/** Carries RECORD from the main thread, and as an answer the id of the thread that has recorded. */
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
