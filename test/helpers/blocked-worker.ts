/**
 * Loaded into the gateway's process before its own code: from one SIGUSR2 to the next, every turn of its workers' event loops takes
 * TURN_MS, as under overload.
 */
import { isMainThread, threadName } from "node:worker_threads";

const TURN_MS = 400;

const channel = new BroadcastChannel("blocked-worker");
channel.unref();
if (isMainThread) {
  let blocked = false;
  process.on("SIGUSR2", () => {
    blocked = !blocked;
    channel.postMessage(blocked);
  });
} else if (threadName?.startsWith("worker-")) {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let blocked = false;
  const turn = (): void => {
    if (!blocked) return;
    Atomics.wait(never, 0, 0, TURN_MS);
    setImmediate(turn);
  };
  channel.onmessage = ({ data }) => {
    blocked = data === true;
    turn();
  };
}
