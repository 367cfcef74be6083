/**
 * npm run soak [-- --minutes N]      and npm run soak -- recorder, npm run soak -- take-over; see recorder.ts and take-over.ts
 * Ten minutes of mixed traffic through a gateway process with two workers, while its configuration and certificate change, workers
 * are killed and, in the last fifth, the process is replaced by another one. Fails when a request fails that was not on a killed
 * worker. Prints the number of requests by kind, and how memory grew.
 */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { appRoot } from "../../src/base/app-root.ts";
import { TestCa } from "../helpers/certificates.ts";
import { GatewayProcess } from "../helpers/gateway.ts";
import { type Backends, startBackends } from "./backends.ts";
import { grpc, http1, http2, type Ports, type Soak, slowReader, slowSender, tcp, webSocket } from "./clients.ts";
import { soakRecorder } from "./recorder.ts";
import { soakTakeOver } from "./take-over.ts";
import { type Failure, Tally } from "./tally.ts";

const WORKERS = 2;
const RELOAD_MS = 5000;
const SAMPLE_MS = 1000;
/** Log lines to keep, access log included: those of the last half minute, the longest that an attempt may take. */
const LINES_KEPT = 30_000;
/** Share of the time after which the process is replaced again and again. Until then its memory is measured. */
const REPLACING_FROM = 0.8;

interface AllPorts extends Ports {
  /** Port of a bind that only every other configuration has. */
  readonly extra: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: "string" }, rounds: { type: "string" } },
});
const [what, ...others] = positionals;
if (others.length > 0 || (what !== undefined && what !== "recorder" && what !== "take-over"))
  throw new Error(
    `unknown soak ${positionals.join(" ")}; there are "recorder" and "take-over", and without a name the one with mixed traffic`,
  );
if (what === "take-over") process.exit((await soakTakeOver(Number(values.rounds ?? 10))) ? 0 : 1);
const minutes = Number(values.minutes ?? (what === undefined ? 10 : 1));
if (!(minutes > 0))
  throw new Error(`--minutes must be a number above 0, for example --minutes 2; it is ${values.minutes}`);
if (what === "recorder") process.exit((await soakRecorder(minutes)) ? 0 : 1);
const totalMs = minutes * 60_000;
const killEveryMs = Math.max(10_000, totalMs / 20);
const replaceEveryMs = Math.max(8000, totalMs / 40);

const launch = {
  env: {
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} --import ${pathToFileURL(`${appRoot}test/helpers/killable.ts`).href}`,
  },
};
const backends = await startBackends();
const authority = new TestCa();
let generation = 0;
let ports = await choosePorts();
let gateway = await GatewayProcess.start(configuration(ports), launch);

/** The process that the current one has replaced. */
let replaced: GatewayProcess | undefined;
const tally = new Tally(explain);
let over = false;
const soak: Soak = { ports: () => ports, tally, over: () => over };
const memory: { readonly minute: number; readonly mib: number }[] = [];
const events = { reloads: 0, kills: 0, replacements: 0 };
const start = performance.now();
const elapsed = (): number => performance.now() - start;

const clients = [
  ...Array.from({ length: 6 }, () => http1(soak, false, true)),
  ...Array.from({ length: 3 }, () => http1(soak, false, false)),
  ...Array.from({ length: 3 }, () => http1(soak, true, true)),
  http1(soak, true, false),
  http2(soak, false),
  http2(soak, true),
  grpc(soak),
  grpc(soak),
  slowReader(soak),
  slowReader(soak),
  slowSender(soak),
  ...Array.from({ length: 3 }, () => webSocket(soak, false)),
  webSocket(soak, true),
  ...Array.from({ length: 3 }, () => tcp(soak)),
];
await Promise.all([disturb(), sample()]);
over = true;
await Promise.race([Promise.all(clients), delay(60_000).then(() => Promise.reject(new Error("clients hang")))]);
const code = await stop(gateway);
authority[Symbol.dispose]();
report();
process.exit(tally.totals.failed === 0 && code === 0 ? 0 : 1);

/** Reloads, kills and replaces, one after the other, so that the effect of each is seen alone. */
async function disturb(): Promise<void> {
  let killedAt = 0;
  let replacedAt = 0;
  while (elapsed() < totalMs) {
    await delay(Math.min(RELOAD_MS, totalMs - elapsed()));
    if (elapsed() > totalMs * REPLACING_FROM) {
      if (elapsed() - replacedAt < replaceEveryMs) continue;
      replacedAt = elapsed();
      await replace();
    } else if (elapsed() - killedAt > killEveryMs) {
      killedAt = elapsed();
      await killWorker();
    } else {
      if ((await gateway.reconfigure(configuration(ports))) !== "applied") throw new Error("a reload was rejected");
      events.reloads++;
      tally.event(`reload ${events.reloads} has been applied`);
    }
  }
}

async function killWorker(): Promise<void> {
  const deaths = (): number => gateway.lines.filter((line) => String(line.message).startsWith("a worker died")).length;
  const before = deaths();
  tally.kill();
  gateway.process.kill("SIGUSR2");
  await gateway.until(() => deaths() > before, "the death of a worker");
  events.kills++;
}

/** Ports outside of ip_local_port_range: the system could give one within it to a client before the gateway listens. */
async function choosePorts(): Promise<AllPorts> {
  const free: number[] = [];
  while (free.length < 4) {
    const server = createServer();
    server.listen(randomInt(20_000, 30_000), "127.0.0.1");
    const listening = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!listening) continue;
    free.push((server.address() as AddressInfo).port);
    server.close();
    await once(server, "close");
  }
  const [http = 0, https = 0, tcp = 0, extra = 0] = free;
  return { http, https, tcp, extra };
}

/** Starts another process, moves the clients to it as a load balancer would, and ends the first. */
async function replace(): Promise<void> {
  const old = gateway;
  replaced = old;
  const next = await choosePorts();
  gateway = await GatewayProcess.start(configuration(next), launch);
  ports = next;
  tally.event("clients switch to another process, and the first gets SIGTERM");
  const code = await stop(old);
  if (code !== 0) throw new Error(`the gateway ended with ${code}: ${old.stderr}`);
  events.replacements++;
  tally.event("the first process has ended");
}

/** The request's own log lines, and all warnings and errors of that time. */
function explain({ id, from, to }: Failure): string[] {
  const lines = [...(replaced?.lines ?? []), ...gateway.lines];
  return lines
    .filter((line) => {
      const time = Date.parse(String(line.time));
      const wrong = line.level === "warn" || line.level === "error" || line.error !== undefined;
      return Object.values(line).includes(id) || (wrong && time >= from && time <= to);
    })
    .slice(-20)
    .map((line) => JSON.stringify(line));
}

async function stop(process: GatewayProcess): Promise<number | null> {
  process.process.kill("SIGTERM");
  const code = await process.exited();
  await process.stop();
  return code;
}

async function sample(): Promise<void> {
  let minute = 0;
  while (elapsed() < totalMs) {
    await delay(SAMPLE_MS);
    // Older log lines cannot explain later failures.
    gateway.keepLines(LINES_KEPT);
    if (elapsed() < totalMs * REPLACING_FROM)
      memory.push({ minute: elapsed() / 60_000, mib: residentMiB(gateway.process.pid ?? 0) });
    if (elapsed() < (minute + 1) * 60_000) continue;
    minute++;
    const { done, failed, cut } = tally.totals;
    const mib = Math.round(memory.at(-1)?.mib ?? 0);
    process.stdout.write(
      `minute ${minute}: ${done} done, ${failed} failed, ${cut} cut by killed workers, ${mib} MiB\n`,
    );
  }
}

/** Every generation has another certificate, another route, and every other one a bind more. */
function configuration({ http, https, tcp, extra }: AllPorts): object {
  generation++;
  const { certFile: cert, keyFile: key } = authority.issue("soak.test");
  const routes = routesTo(backends);
  const more = { port: extra, listeners: [{ protocol: "HTTP", routes }] };
  return {
    config: { workerThreads: WORKERS, logging: { level: "info" } },
    binds: [
      { port: http, listeners: [{ protocol: "HTTP", routes }] },
      { port: https, listeners: [{ protocol: "HTTPS", tls: { cert, key }, routes }] },
      {
        port: tcp,
        listeners: [{ protocol: "TCP", tcpRoutes: [{ backends: [{ host: `127.0.0.1:${backends.tcp}` }] }] }],
      },
      ...(generation % 2 === 0 ? [more] : []),
    ],
  };
}

function routesTo({ http: port, grpc }: Backends): object[] {
  const host = `127.0.0.1:${port}`;
  return [
    {
      name: `generation-${generation}`,
      matches: [{ path: { exact: `/generation-${generation}` } }],
      backends: [{ host }],
    },
    {
      name: "grpc",
      matches: [{ path: { pathPrefix: "/soak.Echo" } }],
      backends: [{ host: `127.0.0.1:${grpc}`, policies: { http: { version: "HTTP/2.0" } } }],
    },
    {
      name: "all",
      policies: { responseHeaderModifier: { set: { "x-generation": String(generation) } } },
      // Without it, requests that arrive over HTTP/2 without TLS would be forwarded over HTTP/2.
      backends: [{ host, policies: { http: { version: "HTTP/1.1" } } }],
    },
  ];
}

function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) / 1024;
}

/** MiB per minute by least squares over the second half: the first one fills pools and caches. */
function slope(): number {
  const points = memory.slice(memory.length / 2);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(points.map(({ minute }) => minute));
  const y = mean(points.map(({ mib }) => mib));
  const covariance = points.reduce((sum, { minute, mib }) => sum + (minute - x) * (mib - y), 0);
  return covariance / points.reduce((sum, { minute }) => sum + (minute - x) ** 2, 0);
}

function report(): void {
  const lines = [...tally.counts].map(
    ([kind, { done, failed, cut }]) =>
      `${kind.padEnd(28)} ${String(done).padStart(8)} done ${failed} failed ${cut} cut by killed workers`,
  );
  const { done, failed, cut } = tally.totals;
  const [first, last] = [memory[0]?.mib ?? 0, memory.at(-1)?.mib ?? 0];
  lines.push(
    `${events.reloads} reloads, ${events.kills} workers killed, ${events.replacements} replacements of the process`,
    `memory: ${first.toFixed(0)} MiB at the start, ${last.toFixed(0)} MiB at the end, slope ${slope().toFixed(2)} MiB per minute in the second half`,
    `soak: ${done} done, ${failed} failed, ${cut} cut by killed workers`,
  );
  process.stdout.write(`${lines.join("\n")}\n`);
}
