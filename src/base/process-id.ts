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
