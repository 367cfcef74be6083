import { randomBytes } from "node:crypto";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

const KEY = "tracegate.process";

/** A random text that identifies this process to itself, the same in all threads. The main thread loads this module before it starts others. */
export const PROCESS_ID = known();

function known(): string {
  const id = getEnvironmentData(KEY);
  if (typeof id === "string") return id;
  const made = randomBytes(8).toString("hex");
  // Threads that start from now on get it.
  if (isMainThread) setEnvironmentData(KEY, made);
  return made;
}

/** The field in which a request says by which process it was sent; http/loop.ts writes it. */
export const LOOP_FIELD = "cdn-loop";

/** The parameter of that field for this process. */
export const SENT_BY = `by=${PROCESS_ID}`;

/** Whether this process, in any of its threads, has sent a request that carries `loop`. */
export function isOwnRequest(loop: string): boolean {
  return loop.includes(SENT_BY);
}
