import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { ms } from "../../../src/base/durations.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { freePorts } from "../../helpers/free-ports.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const MODULE = "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36";
const LIMITS = `domain: shop
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 2 }
`;

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "tracegate-rate-limit-"));
const children: ChildProcess[] = [];
after(async () => {
  for (const child of children) await stopped(child);
  rmSync(folder, { recursive: true });
});

/** Builds the service, which takes half a minute the first time; later Go's cache has it. */
async function missing(): Promise<string | false> {
  const redis = await run("redis-server", ["--version"]).catch(() => undefined);
  if (redis === undefined) return "no redis-server here";
  const go = await run("go", ["version"]).catch(() => undefined);
  if (go === undefined) return "no Go here";
  const built = await run("go", ["install", MODULE], { env: { ...process.env, GOBIN: folder } }).catch(() => undefined);
  return built === undefined ? "Go cannot fetch the rate limit service here" : false;
}

function stopped(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else {
      child.once("exit", () => resolve());
      child.kill("SIGKILL");
    }
  });
}

/** The real service with its database; returns the port of its gRPC side. */
async function startService(): Promise<number> {
  const socket = join(folder, "redis.sock");
  const redis = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", folder];
  children.push(spawn("redis-server", redis, { stdio: "ignore" }));
  mkdirSync(join(folder, "limits", "config"), { recursive: true });
  writeFileSync(join(folder, "limits", "config", "shop.yaml"), LIMITS);
  const [port, grpcPort, debugPort] = (await freePorts(3)) as [number, number, number];
  const env = {
    ...process.env,
    HOST: "127.0.0.1",
    PORT: String(port),
    GRPC_HOST: "127.0.0.1",
    GRPC_PORT: String(grpcPort),
    DEBUG_HOST: "127.0.0.1",
    DEBUG_PORT: String(debugPort),
    RUNTIME_ROOT: folder,
    RUNTIME_SUBDIRECTORY: "limits",
    RUNTIME_WATCH_ROOT: "false",
    REDIS_SOCKET_TYPE: "unix",
    REDIS_URL: socket,
    USE_STATSD: "false",
  };
  const deadline = Date.now() + 20_000;
  for (;;) {
    // It exits if its database is not running yet.
    const service = spawn(join(folder, "service_cmd"), { env, stdio: "ignore" });
    children.push(service);
    while (service.exitCode === null) {
      const healthy = await fetch(`http://127.0.0.1:${port}/healthcheck`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (healthy) return grpcPort;
      if (Date.now() > deadline) throw new Error("the rate limit service does not start");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

test("the real rate limit service counts for the gateway", { skip: await missing() }, async () => {
  const port = await startService();
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  const target = (to: number) => ({ type: "static", host: "127.0.0.1", port: to }) as const;
  const descriptors = [
    { type: "requests" as const, entries: [{ key: "user", value: "request.headers['x-user']" }] },
    {
      type: "requests" as const,
      entries: [{ key: "user", value: "'override ' + request.headers['x-user']" }],
      limitOverride: "{'unit': 'hour', 'requestsPerUnit': 100}",
    },
  ];
  const remoteRateLimit = {
    target: target(port),
    domain: "shop",
    descriptors,
    failureMode: "failClosed",
    timeout: ms(5000),
  } as const;
  await using plane = await TestPlane.start([{ target: target(upstream.port), policies: { remoteRateLimit } }]);
  const ask = async (user: string) => {
    const client = await RawPeer.connect(plane.port);
    client.send(`GET / HTTP/1.1\r\nHost: a\r\nX-User: ${user}\r\n\r\n`);
    const response = await client.message();
    client.socket.destroy();
    return [
      statusOf(response),
      valuesOf(response, "x-ratelimit-limit").join(),
      valuesOf(response, "x-ratelimit-remaining").join(),
    ];
  };
  assert.deepEqual(await ask("ann"), [200, "2", "1"]);
  assert.deepEqual(await ask("ann"), [200, "2", "0"]);
  assert.deepEqual(await ask("ann"), [429, "2", "0"]);
  assert.deepEqual(await ask("bob"), [200, "2", "1"]);
});
