/** The published package, as `npm run build` makes it, and an empty Node.js program with the same number of threads. */
import { execFileSync } from "node:child_process";
import { cpSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answersOk } from "../lib/http.ts";
import { freePorts, waitFor } from "../lib/ports.ts";
import { Child, NODE, NODE_FIRST } from "../lib/proc.ts";
import type { Bench } from "../lib/types.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WORKERS = 2;

/** Builds the package, and copies what is in it to `<bench.folder>/package`, whose path this returns. */
export function installPackage(bench: Bench): string {
  const folder = join(bench.folder, "package");
  execFileSync(NODE, ["scripts/build.ts"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  for (const name of ["bin", "dist", "schema", "examples", "package.json"])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  return folder;
}

/** A gateway with two workers and one route, as soon as its readiness server answers 200. */
export async function startPackage(bench: Bench, folder: string): Promise<Child> {
  const [port = 0, adminPort = 0, statsPort = 0, readyPort = 0] = await freePorts(4);
  const file = join(bench.folder, "start.yaml");
  await writeFile(
    file,
    `config:
  adminAddr: 127.0.0.1:${adminPort}
  statsAddr: 127.0.0.1:${statsPort}
  readinessAddr: 127.0.0.1:${readyPort}
  workerThreads: ${WORKERS}
binds:
- port: ${port}
  listeners:
  - protocol: HTTP
    routes:
    - backends: [{host: "127.0.0.1:${port}"}]
`,
  );
  return untilReady(bench, "package", [join(folder, "bin/tracegate"), "-f", file], readyPort);
}

/** Node.js with a server and two idle threads: the lower bound of a start. */
export async function startEmptyNode(bench: Bench): Promise<Child> {
  const [port = 0] = await freePorts(1);
  const code = `
    const { Worker } = require("node:worker_threads");
    let started = 0;
    const answer = (_request, response) => response.writeHead(started === ${WORKERS} ? 200 : 503).end();
    require("node:http").createServer(answer).listen(${port}, "127.0.0.1");
    const thread = "const { parentPort } = require('node:worker_threads'); parentPort.on('message', () => {}).postMessage(1)";
    for (let i = 0; i < ${WORKERS}; i++) new Worker(thread, { eval: true }).on("message", () => started++);`;
  return untilReady(bench, "node", [NODE, "--eval", code], port);
}

/** Runs `tgctl --help` to its end. */
export async function helpOfPackage(bench: Bench, folder: string): Promise<void> {
  const child = new Child("tgctl", [join(folder, "bin/tgctl"), "--help"], optionsOf(bench));
  await child.output();
}

async function untilReady(bench: Bench, name: string, command: readonly string[], port: number): Promise<Child> {
  const child = new Child(name, command, { ...optionsOf(bench), stdout: "ignore" });
  await waitFor(child, "/healthz/ready", () => answersOk(port, "/healthz/ready"));
  return child;
}

/** On all cores: a start uses as many as there are. */
function optionsOf(bench: Bench) {
  return { env: NODE_FIRST, stdout: "pipe", folder: bench.folder } as const;
}
