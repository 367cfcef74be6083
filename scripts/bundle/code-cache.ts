import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { root } from "../lib/files.ts";

const RECORDER = `${root}scripts/bundle/recorder.ts`;
/** For each step of a run; a start without cache takes about a second. */
const PATIENCE_MS = 30_000;
/** Loading in a thread of its own is for large files. */
const LARGE_BYTES = 512 * 1024;
/** `recorder:recorder`, hashed slowly enough to need the hashing thread. */
const PASSWORD = "$$2b$$04$$BjLL2fdFLWsDXcIY3OPAcOByy4AIRPxzUxQKy5RZyb6ri.GFiaDc2";
const CREDENTIALS = `Basic ${Buffer.from("recorder:recorder").toString("base64")}`;

/**
 * Runs the programs in `dist` and writes the code that V8 has compiled next to each bundle: after a gateway's first request, a
 * reload of a large file, an explanation, a password check, and the client's help.
 */
export async function recordCodeCache(dist: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-build-"));
  const upstream = createServer((_request, response) => response.end("recorded"));
  await once(upstream.listen(0, "127.0.0.1"), "listening");
  const { port } = upstream.address() as AddressInfo;
  try {
    await runGateway(dist, folder, port);
    await runToEnd(start(dist, "cli/main", ["--help"]));
  } finally {
    upstream.close();
    rmSync(folder, { recursive: true });
  }
  for (const bundle of [
    "main",
    "worker-worker",
    "config-load-worker",
    "rehearsal-rehearsal-worker",
    "impact-impact-worker",
    "policies-basic-auth-hashing-thread",
    "cli-main",
  ])
    if (!existsSync(`${dist}/code/${bundle}.cjs.cache`)) throw new Error(`no code of ${bundle} was recorded`);
}

async function runGateway(dist: string, folder: string, upstream: number): Promise<void> {
  const file = join(folder, "gateway.yaml");
  const [port, admin] = [await freePort(), await freePort()];
  writeFileSync(file, configuration(port, admin, upstream, ""));
  const gateway = start(dist, "main", ["-f", file]);
  const url = `http://127.0.0.1:${port}`;
  try {
    await answer(gateway, `${url}/hello`, 200);
    gateway.kill("SIGUSR2");
    await waitFor(gateway, () => existsSync(`${dist}/code/worker-worker.cjs.cache`));
    const routes = Array.from({ length: LARGE_BYTES / 128 }, (_, i) => route(`large${i}`, `/large/${i}`, upstream));
    writeFileSync(`${file}.new`, configuration(port, admin, upstream, routes.join("")));
    renameSync(`${file}.new`, file);
    await waitFor(gateway, () => existsSync(`${dist}/code/config-load-worker.cjs.cache`));
    const question = { method: "POST", body: JSON.stringify({ request: { url: `${url}/hello` } }) };
    await answer(gateway, `http://127.0.0.1:${admin}/explain`, 200, question);
    gateway.kill("SIGUSR2");
    await waitFor(gateway, () => existsSync(`${dist}/code/rehearsal-rehearsal-worker.cjs.cache`));
    const impact = { method: "POST", body: readFileSync(file, "utf8") };
    await answer(gateway, `http://127.0.0.1:${admin}/impact`, 200, impact);
    await waitFor(gateway, () => existsSync(`${dist}/code/impact-impact-worker.cjs.cache`));
    await answer(gateway, `${url}/password`, 200, { headers: { authorization: CREDENTIALS } });
    gateway.kill("SIGUSR2");
    await waitFor(gateway, () => existsSync(`${dist}/code/policies-basic-auth-hashing-thread.cjs.cache`));
  } finally {
    await runToEnd(gateway, "SIGTERM");
  }
}

function configuration(port: number, admin: number, upstream: number, more: string): string {
  return `config: {adminAddr: "127.0.0.1:${admin}", statsAddr: "127.0.0.1:0", readinessAddr: "127.0.0.1:0", workerThreads: 2}
binds:
- port: ${port}
  listeners:
  - protocol: HTTP
    routes:
${route("all", "/", upstream)}${route("password", "/password", upstream)}      policies: {basicAuth: {htpasswd: "recorder:${PASSWORD}"}}
${more}`;
}

function route(name: string, path: string, upstream: number): string {
  return `    - name: ${name}
      matches: [{path: {pathPrefix: ${path}}}]
      backends: [{host: "127.0.0.1:${upstream}"}]
`;
}

function start(dist: string, entry: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, ["--require", RECORDER, `${dist}/${entry}.cjs`, ...args], {
    stdio: ["ignore", "ignore", "inherit"],
  });
}

async function runToEnd(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null) throw new Error(`a run to record ended with ${child.exitCode}`);
  const ended = once(child, "exit", { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (signal !== undefined) child.kill(signal);
  const [code] = await ended;
  if (code !== 0) throw new Error(`a run to record ended with ${code}`);
}

/** Asks until the answer has this status. */
async function answer(gateway: ChildProcess, url: string, status: number, request: RequestInit = {}): Promise<void> {
  await waitFor(gateway, async () => {
    const response = await fetch(url, request).catch(() => undefined);
    await response?.text();
    return response?.status === status;
  });
}

async function waitFor(child: ChildProcess, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (child.exitCode !== null) throw new Error(`a run to record ended with ${child.exitCode}`);
    if (performance.now() > end) throw new Error("a run to record takes too long");
    await delay(20);
  }
}

/** A port without a listener. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await once(probe.listen(0, "127.0.0.1"), "listening");
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return port;
}
