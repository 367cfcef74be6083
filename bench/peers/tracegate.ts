import { existsSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { answersOk } from "../lib/http.ts";
import { freePorts, waitFor, waitForPort } from "../lib/ports.ts";
import { Child, NODE, NODE_FIRST } from "../lib/proc.ts";
import type { Bench, CertificateFiles, Peer, Protocol, ProxyOptions, RunningProxy } from "../lib/types.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

export interface TracegateOptions {
  readonly cpus: string | undefined;
  readonly workers: number;
  readonly accessLog: boolean;
  /** A file for standard output, with log lines in JSON; default: /dev/null, lines of text. */
  readonly logFile?: string;
  /** The text of `routes:`, each line indented by at least two spaces. */
  readonly routes: string;
  /** The certificate to show clients; absent = plaintext. */
  readonly tls?: CertificateFiles | undefined;
  /** `tcp`: `routes` are TCP routes. */
  readonly protocol?: Protocol | undefined;
  /** false: the flight recorder is off. */
  readonly recorder?: boolean;
  /** src/main.ts of the checkout to run; default: the bench's own. */
  readonly main?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** A launcher to start instead, with the options that it gives Node.js. */
  readonly program?: string;
}

export interface RunningTracegate extends RunningProxy {
  readonly adminPort: number;
  readonly statsPort: number;
  readonly readyPort: number;
  /** Replaces the routes in the watched file, by one rename. */
  rewrite(routes: string): Promise<void>;
}

export const tracegate: Peer = {
  name: "tracegate",
  hint: "run the bench in a checkout",
  find: () => (existsSync(MAIN) ? MAIN : undefined),
  start: (bench, _program, options) => startTracegate(bench, { ...onOneCore(bench), ...forwardAll(options) }),
};

/** Another checkout, so that a change and its base are measured in one run: `BENCH_BASE=../before npm run bench -- cpu`. */
export const base: Peer = {
  name: "base",
  hint: "BENCH_BASE names no other checkout",
  find: () => {
    const main = join(process.env.BENCH_BASE ?? "", "src/main.ts");
    return process.env.BENCH_BASE !== undefined && existsSync(main) ? main : undefined;
  },
  start: async (bench, main, options) => ({
    ...(await startTracegate(bench, { ...onOneCore(bench), ...forwardAll(options), main })),
    name: "base",
  }),
};

function forwardAll({ originPort, ...options }: ProxyOptions): Omit<TracegateOptions, "workers"> {
  return { ...options, routes: oneRoute(originPort, options.protocol) };
}

/** What most rows start: one worker on the proxy's core, no access log. */
export function onOneCore(bench: Bench): Omit<TracegateOptions, "routes"> {
  return { cpus: bench.cores.proxy, workers: 1, accessLog: false };
}

/** Starts tracegate from a file, with the Node that runs the bench, and waits until it is ready and accepts connections. */
export async function startTracegate(bench: Bench, options: TracegateOptions): Promise<RunningTracegate> {
  const [port = 0, adminPort = 0, statsPort = 0, readyPort = 0] = await freePorts(4);
  const file = join(bench.folder, `tracegate-${port}.yaml`);
  const rewrite = async (routes: string): Promise<void> => {
    await writeFile(`${file}.new`, config({ port, adminPort, statsPort, readyPort }, { ...options, routes }));
    await rename(`${file}.new`, file);
  };
  await rewrite(options.routes);
  const { program, main = MAIN } = options;
  // As bin/launch.sh does it, but with the Node of the bench.
  const preloaded = join(dirname(main), "base/compile-cache.ts");
  const command = program === undefined ? [NODE, ...nodeFlags(), "--require", preloaded, main] : [program];
  const child = new Child("tracegate", [...command, "-f", file], {
    env: { ...NODE_FIRST, ...options.env },
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    stdout: options.logFile === undefined ? "ignore" : { file: options.logFile },
    folder: bench.folder,
  });
  await waitFor(child, "/healthz/ready", () => answersOk(readyPort, "/healthz/ready"));
  await waitForPort(port, child);
  return { name: "tracegate", port, child, adminPort, statsPort, readyPort, rewrite };
}

/** One route that forwards everything, as in the configurations of the peers. */
export function oneRoute(originPort: number, protocol: Protocol = "http"): string {
  // Without a version, requests that arrive over HTTP/2 without TLS would go to the origin over HTTP/2 too.
  const version = { h2: "HTTP/1.1", grpc: "HTTP/2.0", http: "", tcp: "" }[protocol];
  const policies = version === "" ? "" : `      policies: { http: { version: ${version} } }\n`;
  return `  - backends:\n    - host: 127.0.0.1:${originPort}\n${policies}`;
}

/** TRACEGATE_NODE_FLAGS, e.g. "--cpu-prof", for looking into a row. */
function nodeFlags(): string[] {
  return (process.env.TRACEGATE_NODE_FLAGS ?? "").split(" ").filter(Boolean);
}

interface Ports {
  readonly port: number;
  readonly adminPort: number;
  readonly statsPort: number;
  readonly readyPort: number;
}

function config(
  ports: Ports,
  { workers, accessLog, logFile, routes, tls, protocol, recorder = true }: TracegateOptions,
): string {
  const listener =
    tls !== undefined
      ? `protocol: HTTPS\n    tls: {cert: ${tls.cert}, key: ${tls.key}}`
      : `protocol: ${protocol === "tcp" ? "TCP" : "HTTP"}`;
  return `config:
  adminAddr: 127.0.0.1:${ports.adminPort}
  statsAddr: 127.0.0.1:${ports.statsPort}
  readinessAddr: 127.0.0.1:${ports.readyPort}
  workerThreads: ${workers}${recorder ? "" : "\n  recorder: {off: true}"}
  logging:
    level: ${accessLog ? "info" : '"info,request=off"'}
    format: ${logFile === undefined ? "text" : "json"}
binds:
- port: ${ports.port}
  listeners:
  - ${listener}
    ${protocol === "tcp" ? "tcpRoutes" : "routes"}:
${indent(routes, "  ")}`;
}

function indent(text: string, by: string): string {
  return text.replace(/^(?=.)/gm, by);
}
