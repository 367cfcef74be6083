/**
 * Configurations of another gateway, served by it and, after `convert`, by a gateway of ours: the same requests must have the same
 * results. Each file lists its requests in its first lines; `*40` sends one 40 times and compares how often each backend got it, `=40`
 * whether one backend got all of them. Fields that the gateway adds to every request, such as X-Forwarded-Proto, are not compared.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { appRoot } from "../../../src/base/app-root.ts";
import type { Converted } from "../../../src/cli/convert/converted.ts";
import { writeFile } from "../../../src/cli/convert/write-file.ts";
import { freePort } from "../../helpers/free-ports.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";

/** A gateway that configurations are converted from. */
interface Other {
  /** Also the name of the folder with the configurations. */
  readonly name: string;
  /** How their names end. */
  readonly ending: string;
  /** How they say that they listen on port 8080. */
  readonly listen: string;
  readonly start: (config: string, folder: string) => ChildProcess;
  readonly convert: (name: string, text: string) => Converted;
}

/** Backends that configurations name, as ports of this machine; the suite chooses others. */
const BACKENDS = ["9001", "9002", "9003", "9004"] as const;
const PATIENCE_MS = 10_000;
/** Fields whose values both have to send on. */
const COMPARED = ["host", "x-real-ip", "x-path", "x-fixed", "x-agent", "accept-encoding"];
const COMPARED_RESPONSE = ["x-powered-by", "cache-control", "x-everywhere", "content-type"];

interface Request {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly times: number;
  readonly isSticky: boolean;
}

/** What a client and a backend see of a request. */
interface Seen {
  readonly status: number;
  readonly location: string | undefined;
  /** Of a backend: its name, what it got. Otherwise the body, if it is not a page of the server's own. */
  readonly body: unknown;
  readonly fields: Readonly<Record<string, unknown>>;
}

function requestsOf(text: string): readonly Request[] {
  return [...text.matchAll(/^# (\w+) (\S+) (\S+)(?: ([*=])(\d+))?$/gm)].map(
    ([, method = "", host = "", path = "", sign, times]) => ({
      method,
      host,
      path,
      times: Number(times ?? "1"),
      isSticky: sign === "=",
    }),
  );
}

async function startBackend(name: string): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    const fields = Object.fromEntries(COMPARED.map((field) => [field, request.headers[field]]));
    const status = request.url?.startsWith("/error") === true ? 500 : 200;
    response.writeHead(status, { "content-type": "application/json", "x-powered-by": "test" });
    response.end(JSON.stringify({ backend: name, method: request.method, url: request.url, fields }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

async function send(port: number, { method, host, path }: Request): Promise<Seen> {
  const headers = { host, connection: "close", "user-agent": "suite", "accept-encoding": "gzip" };
  const sent = httpRequest({ port, host: "127.0.0.1", method, path, headers, timeout: PATIENCE_MS });
  sent.on("timeout", () => sent.destroy(new Error("no response")));
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const body = await readText(response);
  const { location } = response.headers;
  const status = response.statusCode ?? 0;
  return {
    status,
    // The other one names the port that the client connected to, which differs.
    location: location === undefined ? undefined : absolute(location, host, port),
    body: body.startsWith("{") ? JSON.parse(body) : status === 200 ? body : "",
    fields: Object.fromEntries(
      COMPARED_RESPONSE.map((field) => [field, status === 200 ? response.headers[field] : undefined]),
    ),
  };
}

/** `/a` of the request's host and `http://host:port/a` are one address. */
function absolute(location: string, host: string, port: number): string {
  const url = new URL(location, `http://${host}/`);
  if (url.port === String(port)) url.port = "";
  return url.href;
}

async function answers(port: number, child: ChildProcess, name: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
    try {
      await send(port, { method: "GET", host: "nobody.example", path: "/", times: 1, isSticky: false });
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(20);
    }
  }
}

/** The results of a request; of one that is sent several times, how often each result came. */
async function resultOf(port: number, request: Request): Promise<unknown> {
  if (request.times === 1) return send(port, request);
  const counts: Record<string, number> = {};
  for (let i = 0; i < request.times; i++) {
    const { status, body } = await send(port, request);
    const backend = typeof body === "object" && body !== null && "backend" in body ? String(body.backend) : "none";
    const key = `${status} from ${backend}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return request.isSticky ? Object.values(counts) : counts;
}

async function compare(other: Other, name: string, backends: ReadonlyMap<string, number>): Promise<readonly string[]> {
  const text = readFileSync(join(`${appRoot}test/suites/${other.name}`, name), "utf8");
  const folder = mkdtempSync(join(tmpdir(), `tracegate-${other.name}-`));
  const withBackends = [...backends].reduce(
    (all, [port, real]) => all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${real}`),
    text,
  );
  const on = (port: number): string => withBackends.replaceAll(other.listen, other.listen.replace("8080", `${port}`));
  const port = await freePort();
  const child = other.start(on(port), folder);
  const ended = once(child, "exit");
  const failed: string[] = [];
  try {
    await using gateway = await LocalGateway.start(parse(writeFile(other.convert(name, on(await freePort())))));
    await answers(port, child, other.name);
    for (const request of requestsOf(text)) {
      const expected = await resultOf(port, request);
      const actual = await resultOf(gateway.port(), request);
      if (isDeepStrictEqual(actual, expected)) continue;
      failed.push(
        `${name}: ${request.method} ${request.host}${request.path}\n  ${other.name.padEnd(7)} ${JSON.stringify(expected)}\n  gateway ${JSON.stringify(actual)}`,
      );
    }
  } finally {
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  }
  return failed;
}

/** What fails. The arguments of the program choose configurations by parts of their names. */
export async function sideBySide(other: Other): Promise<readonly string[]> {
  const folder = `${appRoot}test/suites/${other.name}`;
  const wanted = process.argv.slice(2);
  const names = readdirSync(folder).filter((name) => name.endsWith(other.ending));
  const servers = await Promise.all(BACKENDS.map(startBackend));
  const ports = new Map(
    servers.map((server, i) => {
      const address = server.address();
      return [BACKENDS[i] ?? "", typeof address === "object" && address !== null ? address.port : 0];
    }),
  );
  const failed: string[] = [];
  let requests = 0;
  try {
    for (const name of names) {
      if (wanted.length > 0 && !wanted.some((each) => name.includes(each))) continue;
      requests += requestsOf(readFileSync(join(folder, name), "utf8")).length;
      failed.push(...(await compare(other, name, ports)));
    }
  } finally {
    for (const server of servers) server.close();
  }
  process.stdout.write(`${other.name}: ${requests} requests\n`);
  return failed;
}
