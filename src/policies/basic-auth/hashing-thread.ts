import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { verifyPassword } from "./htpasswd.ts";

/** A question to the thread and, as a boolean, its answer. */
export interface HashingJob {
  readonly hashed: string;
  readonly password: string;
}

/** How far this thread stands back, of 19: it gets what those that serve requests leave. */
const NICENESS = 15;

/** The entry of the thread that checks passwords, one after the other. */
if (parentPort !== null) {
  const port = parentPort;
  // Elsewhere than on Linux, this would be the priority of the whole process.
  if (process.platform === "linux") setPriority(NICENESS);
  port.on("message", ({ hashed, password }: HashingJob) => port.postMessage(verifyPassword(hashed, password)));
}
