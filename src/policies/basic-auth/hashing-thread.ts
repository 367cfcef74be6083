import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { verifyPassword } from "./htpasswd.ts";

/** A message to the thread; it replies with a boolean. */
export interface HashingJob {
  readonly hashed: string;
  readonly password: string;
}

/** Priority of the thread, up to 19: it gets the processor time that threads serving requests leave. */
const NICENESS = 15;

/** Entry of the thread that verifies passwords, one after the other. A separate file, which `new Worker` loads. */
if (parentPort !== null) {
  const port = parentPort;
  // On Linux, priorities are per thread; elsewhere this would be that of the whole process.
  if (process.platform === "linux") setPriority(NICENESS);
  port.on("message", ({ hashed, password }: HashingJob) => port.postMessage(verifyPassword(hashed, password)));
}
