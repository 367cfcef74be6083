/**
 * node idle.ts <port> <connections>
 * Opens the connections, 64 at a time, does one request on each and keeps them. Prints one JSON line {"open", "failed"} when
 * all have had their answer, and another for every line on standard input; ends with standard input.
 */
import { connect } from "node:net";
import { createInterface } from "node:readline";

const [port = 0, count = 0] = process.argv.slice(2).map(Number);
const AT_ONCE = 64;
let open = 0;
let failed = 0;

function openOne(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      open++;
      socket.write("GET / HTTP/1.1\r\nHost: bench.test\r\n\r\n");
    });
    socket.on("data", () => resolve());
    socket.on("error", () => failed++);
    socket.on("close", () => {
      open--;
      resolve();
    });
  });
}

async function openSeveral(share: number): Promise<void> {
  for (let index = 0; index < share; index++) await openOne();
}

function report(): void {
  process.stdout.write(`${JSON.stringify({ open, failed })}\n`);
}

await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => openSeveral(Math.floor((count + lane) / AT_ONCE))));
report();
const lines = createInterface({ input: process.stdin });
lines.on("line", report);
lines.on("close", () => process.exit());
