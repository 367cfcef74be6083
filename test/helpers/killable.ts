/** Loaded into the gateway's process before its own code: SIGUSR2 ends one of its workers at once, as a crash would. */
import { isMainThread, type Worker } from "node:worker_threads";

if (isMainThread) {
  const workers: Worker[] = [];
  process.on("worker", (worker) => {
    if (!worker.threadName?.startsWith("worker-")) return;
    workers.push(worker);
    worker.once("exit", () => workers.splice(workers.indexOf(worker), 1));
  });
  process.on("SIGUSR2", () => void workers[0]?.terminate());
}
