/**
 * Explanations of a gateway with 10,000 routes of one host: the first one, which starts the rehearsal thread and compiles the routes, further
 * ones, and the memory of the process before and with the thread.
 * Run: node bench/micro/explain.ts [program], by default bin/tracegate of the checkout; or that of an installed package.
 *
 * Node 24.21, two shared cores, checkout: cold 0.43 to 0.61 s, warm 3.7 ms (5.5 ms under load; most of it is code that V8 has not optimized
 * yet: after 300 questions 1.2 ms in the thread), memory +30 MiB. Of a question, the choice of the route with its reasons and origins takes
 * 0.45 ms, and its event has 9.6 KB.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { residentMiB } from "../lib/proc.ts";
import { median } from "../lib/stats.ts";

const ROUTES = 10_000;
const ROUNDS = 50;

const program = process.argv[2] ?? fileURLToPath(new URL("../../bin/tracegate", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tracegate-explain-"));
const file = join(folder, "gateway.json");
const routes = Array.from({ length: ROUTES }, (_, i) => ({
  name: `route${i}`,
  matches: [{ path: { pathPrefix: `/route${i}` } }],
  backends: [{ host: "127.0.0.1:9" }],
}));
const own = { adminAddr: "127.0.0.1:0", statsAddr: "127.0.0.1:0", readinessAddr: "127.0.0.1:0", workerThreads: 2 };
writeFileSync(file, JSON.stringify({ config: own, binds: [{ port: 0, listeners: [{ routes }] }] }));

const gateway = spawn(program, ["-f", file], {
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, LOG_FORMAT: "json" },
});
try {
  let admin = "";
  for await (const line of createInterface(gateway.stdout)) {
    const { message, server, address } = JSON.parse(line) as Record<string, string>;
    if (message === "listening" && server === "admin") admin = address ?? "";
    if (message === "ready") break;
  }
  const body = JSON.stringify({ request: { url: "http://shop.example/route7777" } });
  const ask = async (): Promise<number> => {
    const start = performance.now();
    const response = await fetch(`http://${admin}/explain`, { method: "POST", body });
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    return performance.now() - start;
  };
  // The connection of the client is not part of the measurement.
  await (await fetch(`http://${admin}/config/status`)).text();
  const pid = gateway.pid ?? 0;
  const asleep = residentMiB(pid);
  const cold = await ask();
  const warm: number[] = [];
  for (let i = 0; i < ROUNDS; i++) warm.push(await ask());
  console.log(`cold ${cold.toFixed(0)} ms, warm ${median(warm).toFixed(1)} ms`);
  console.log(`memory ${asleep.toFixed(0)} MiB, with the thread ${residentMiB(pid).toFixed(0)} MiB`);
} finally {
  gateway.kill("SIGKILL");
  await once(gateway, "close");
  rmSync(folder, { recursive: true });
}
