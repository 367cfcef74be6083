/** Backend and attacker run in threads of their own, so that they do not disturb the neighbour, whose latency is measured. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { attackOnce, type Outcome } from "./attacker.ts";
import { ATTACKS } from "./attacks.ts";

type Task = { readonly role: "backend" } | AttackTask;

export interface AttackTask {
  readonly role: "attacker";
  readonly port: number;
  readonly name: string;
  readonly milliseconds: number;
}

/** Runs this file in a thread; resolves with its first message. */
export function inThread<T>(task: Task): Promise<{ readonly worker: Worker; readonly message: T }> {
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  return new Promise((resolve, reject) => {
    worker.once("message", (message: T) => resolve({ worker, message }));
    worker.once("error", reject);
  });
}

/** Answers everything with a short body, and `/large` with 100 MB. */
function serve(): void {
  const piece = Buffer.alloc(1024 * 1024);
  const server = createServer((request, response) => {
    request.resume();
    if (request.url !== "/large") {
      request.on("end", () => response.end("hello"));
      return;
    }
    let left = 100;
    const more = (): void => {
      while (left-- > 0) if (!response.write(piece)) return;
      response.end();
    };
    response.on("drain", more);
    more();
  });
  // Attacks that cost one backend connection each open thousands per second. A connection for which Node's default queue of
  // 511 has no room is retried by the system only after a second.
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () =>
    parentPort?.postMessage((server.address() as AddressInfo).port),
  );
}

/** Opens a new connection whenever one has ended; as many at a time as the attack defines. */
async function attackAgainAndAgain({ name, port, milliseconds }: AttackTask): Promise<void> {
  const attack = ATTACKS.find((each) => each.name === name);
  if (attack === undefined) throw new Error(`no attack ${name}`);
  const end = performance.now() + milliseconds;
  const outcomes: Outcome[] = [];
  const onOne = async (): Promise<void> => {
    while (performance.now() < end) outcomes.push(await attackOnce(port, attack, end - performance.now()));
  };
  await Promise.all(Array.from({ length: attack.connections ?? 1 }, onOne));
  parentPort?.postMessage(outcomes);
}

const task = workerData as Task | null;
if (task?.role === "backend") serve();
else if (task?.role === "attacker") await attackAgainAndAgain(task);
