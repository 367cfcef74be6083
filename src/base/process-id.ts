import { randomBytes } from "node:crypto";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

const KEY = "tracegate.process";

/** A random text by which this process recognizes itself, the same in all threads. The main thread loads this module before it starts other threads. */
export const PROCESS_ID = known();

function known(): string {
  const id = getEnvironmentData(KEY);
  if (typeof id === "string") return id;
  const made = randomBytes(8).toString("hex");
  // Threads that start later inherit it.
  if (isMainThread) setEnvironmentData(KEY, made);
  return made;
}

/** The field that identifies the process that sent a request; http/loop.ts writes it. */
export const LOOP_FIELD = "cdn-loop";

/** The parameter of that field for this process. */
export const SENT_BY = `by=${PROCESS_ID}`;

/** Whether any thread of this process sent the request that carries `loop`. */
export function isOwnRequest(loop: string): boolean {
  return loop.includes(SENT_BY);
}
