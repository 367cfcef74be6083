import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import type { BackendsAnswer, BackendView, ProbeAnswer } from "../../../src/admin/plane/backends.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { TGCTL } from "../../helpers/programs.ts";
import { closedPort, RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

/** Responds to requests and health checks with a status of its own. */
class Backend {
  status = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      response.statusCode = this.status;
      request.resume();
      response.end("hello");
    });
  }

  static async listen(): Promise<Backend> {
    const backend = new Backend();
    await new Promise<void>((resolve) => backend.#server.listen(0, "127.0.0.1", resolve));
    return backend;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

let checked: Backend;
let other: Backend;
let gateway: TestGateway;
let closed: number;

const ACTIVE = {
  http: { path: "/healthz" },
  interval: "100ms",
  timeout: "5s",
  unhealthyThreshold: 1,
  healthyThreshold: 1,
};

function workload(name: string, port: number, zone: string, status = "healthy"): object {
  const services = { "shop/cart.shop.svc.cluster.local": { 80: port } };
  const locality = { region: "eu", zone };
  return { uid: name, name, namespace: "shop", workloadIps: ["127.0.0.1"], status, services, locality };
}

function config(): object {
  const route = (name: string, backend: object, more: object = {}): object => ({
    name,
    matches: [{ path: { pathPrefix: `/${name}` } }],
    backends: [{ ...backend, ...more }],
  });
  const service = { name: "shop/cart.shop.svc.cluster.local", port: 80 };
  return {
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              route("api", { backend: "/api" }, { weight: 3 }),
              route("gone", { host: `127.0.0.1:${closed}`, policies: { health: { eviction: { duration: "1h" } } } }),
              route("cart", { service }),
              route("named", { host: `localhost:${other.port}` }),
            ],
          },
        ],
      },
    ],
    backends: [
      { name: "api", host: `127.0.0.1:${checked.port}`, policies: { health: { active: ACTIVE } } },
      { name: "unused", host: "127.0.0.1:1" },
    ],
    services: [{ name: "cart", namespace: "shop", hostname: "cart.shop.svc.cluster.local", ports: { 80: 80 } }],
    workloads: [workload("near", other.port, "a"), workload("sick", closed, "b", "unhealthy")],
  };
}

before(async () => {
  [checked, other, closed] = await Promise.all([Backend.listen(), Backend.listen(), closedPort()]);
  gateway = await TestGateway.start(config());
});
after(async () => {
  checked.close();
  other.close();
  await gateway.stop();
});

async function admin(path: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${gateway.url("admin")}${path}`);
  return { status: response.status, text: await response.text() };
}

async function list(query = ""): Promise<readonly BackendView[]> {
  const { status, text } = await admin(`/backends${query}`);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as BackendsAnswer).backends.shown;
}

async function one(key: string): Promise<BackendView> {
  const { status, text } = await admin(`/backends/${encodeURIComponent(key)}`);
  assert.equal(status, 200, text);
  return JSON.parse(text) as BackendView;
}

async function send(path: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`);
  await response.text();
  return response.status;
}

async function endpointOf(key: string): Promise<BackendView["endpoints"]["shown"][0] | undefined> {
  return (await one(key)).endpoints.shown[0];
}

test("a backend is shown with its routes, where it is written, its requests and the state of its active check", async () => {
  await until(async () => (await endpointOf("/api"))?.state === "healthy");
  assert.equal(await send("/api"), 200);
  const { endpoints, ...backend } = await one("/api");
  const [route] = backend.routes.shown;
  assert.deepEqual([backend.name, backend.kind, backend.requests, backend.failing], ["/api", "static", 1, 0]);
  assert.equal(backend.origin?.place?.file, gateway.file);
  assert.deepEqual([route?.name, route?.weight, backend.routes.total], ["default/api", 3, 1]);
  assert.deepEqual(route?.origin?.path.slice(-2), ["backends", 0]);
  assert.ok((route?.origin?.place?.line ?? 0) > 0);
  const [endpoint] = endpoints.shown;
  assert.deepEqual(endpoint?.addresses, [`127.0.0.1:${checked.port}`]);
  assert.ok((endpoint?.check?.passed ?? 0) > 0 && (endpoint?.latency ?? 0) > 0);
  assert.deepEqual(endpoint?.pool, { active: 0, idle: 1, connecting: 0, waiting: 0 });
  assert.deepEqual(
    endpoint?.changes.map(({ state }) => state),
    ["healthy"],
  );

  checked.status = 503;
  await until(async () => (await endpointOf("/api"))?.state === "unhealthy");
  checked.status = 200;
  await until(async () => (await endpointOf("/api"))?.state === "healthy");
  const { changes = [] } = (await endpointOf("/api")) ?? {};
  assert.deepEqual(
    changes.map((change) => (change.state === "unhealthy" ? change.reason : change.state)),
    ["healthy", "status 503", "healthy"],
  );
  const times = changes.map(({ at }) => at);
  assert.ok(times.every((at) => Math.abs(Date.now() - at) < 600_000) && times[0] !== undefined);
});

test("an evicted endpoint says until when and why; a failing backend is found by its state, its address and its key", async () => {
  assert.equal(await send("/gone"), 503);
  const shown = await list("?failing=true");
  const gone = shown.find(({ kind }) => kind === "static");
  const [endpoint] = gone?.endpoints.shown ?? [];
  assert.equal(endpoint?.state, "evicted");
  assert.ok((endpoint?.evicted?.until ?? 0) > Date.now() + 3_000_000);
  assert.equal(endpoint?.evicted?.cause?.consecutiveFailures, 1);
  assert.deepEqual(
    endpoint?.changes.map((change) => change.state === "evicted" && change.forMs),
    [3_600_000],
  );
  assert.equal(gone?.failing, 1);
  const found = await list(`?find=127.0.0.1:${closed}`);
  assert.deepEqual(
    found.map(({ key }) => key),
    [gone?.key, "service/shop/cart.shop.svc.cluster.local"],
  );
  assert.equal((await one(gone?.key ?? "")).key, gone?.key);
});

test("tgctl shows a line for each endpoint, with the reason why it gets no requests", async () => {
  await send("/gone");
  const args = ["proxy", "backends", "--local", "--failing", "--proxy-admin-port", new URL(gateway.url("admin")).port];
  const child = spawn(TGCTL, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = (await text(child.stdout)).split("\n");
  assert.match(lines[0] ?? "", /^BACKEND +ENDPOINT +STATE/);
  const gone = lines.find((line) => line.includes(" evicted ")) ?? "";
  assert.match(gone, new RegExp(`^127\\.0\\.0\\.1:${closed} +127\\.0\\.0\\.1:${closed} +evicted +0\\.\\d\\d`));
  assert.match(gone, /until \d\d:\d\d:\d\d, failures in a row: 1$/);
});

async function probe(key: string): Promise<ProbeAnswer> {
  let answer = "";
  // Another test may have probed within the last second.
  await until(async () => {
    const response = await fetch(`${gateway.url("admin")}/probe/${encodeURIComponent(key)}`, { method: "POST" });
    answer = await response.text();
    return response.status !== 503;
  });
  return JSON.parse(answer) as ProbeAnswer;
}

test("a probe says what it sent and what came back, and changes nothing", async () => {
  await until(async () => (await endpointOf("/api"))?.state === "healthy");
  const address = `127.0.0.1:${checked.port}`;
  const sent = { type: "http", path: ACTIVE.http.path };
  const [one] = (await probe("/api")).probes;
  assert.ok(one !== undefined && one.duration > 0);
  assert.deepEqual({ ...one, duration: 0 }, { address, sent, healthy: true, status: 200, duration: 0 });

  // Without a check it is a connection, also to an endpoint that is evicted.
  await send("/gone");
  const shown = await list("?failing=true");
  const { key = "", endpoints } = shown.find(({ kind }) => kind === "static") ?? {};
  const [before] = endpoints?.shown ?? [];
  const gone = await probe(key);
  assert.deepEqual([gone.key, gone.endpoints, gone.probes.length], [key, 1, 1]);
  const [failed] = gone.probes;
  assert.deepEqual([failed?.sent.type, failed?.healthy, failed?.status], ["tcp", false, undefined]);
  assert.match(failed?.reason ?? "", /ECONNREFUSED/);
  const after = await endpointOf(key);
  assert.deepEqual([after?.state, after?.requests, after?.changes], ["evicted", before?.requests, before?.changes]);

  const service = await probe("service/shop/cart.shop.svc.cluster.local");
  assert.deepEqual(
    service.probes.map(({ address, healthy }) => [address, healthy]),
    [[`127.0.0.1:${other.port}`, true]],
    "nothing connects to the workload that is not ready",
  );
  assert.equal(service.endpoints, 2);
  assert.deepEqual(await probe("/unused"), { key: "/unused", endpoints: 1, probes: [] });
});

test("only endpoints of the configuration are probed, and not for a page", async () => {
  const ask = async (key: string, init: RequestInit = { method: "POST" }): Promise<number> => {
    const response = await fetch(`${gateway.url("admin")}/probe/${encodeURIComponent(key)}`, init);
    await response.text();
    return response.status;
  };
  for (const key of ["127.0.0.1:22", `127.0.0.1:${other.port}`, ""]) assert.equal(await ask(key), 404, key);
  assert.equal(await ask("/api", {}), 405);
  assert.equal(await ask("/api", { method: "POST", headers: { origin: "http://localhost:15000" } }), 403);
});

test("tgctl probes a backend and shows what came back", async () => {
  const port = new URL(gateway.url("admin")).port;
  const run = async (key: string): Promise<string> => {
    const child = spawn(TGCTL, ["proxy", "backends", "--probe", key, "--local", "--proxy-admin-port", port]);
    const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return out + error;
  };
  let shown = "";
  await until(async () => {
    shown = await run("/api");
    return !shown.includes("try again");
  });
  assert.match(shown, /^ENDPOINT +STATE +TIME +SENT +RESULT\n/);
  assert.match(shown, new RegExp(`\n127\\.0\\.0\\.1:${checked.port} +healthy +[\\d.]+ms +GET /healthz +status 200\n`));
  assert.match(await run("/nowhere"), /no backend has the key "\/nowhere"/);
});

test("a service has its workloads with their places, those that get no requests first", async () => {
  assert.equal(await send("/cart"), 200);
  const service = await one("service/shop/cart.shop.svc.cluster.local");
  assert.deepEqual([service.requests, service.failing, service.routes.shown[0]?.name], [1, 1, "default/cart"]);
  const [sick, near] = service.endpoints.shown;
  assert.deepEqual([sick?.state, sick?.workload?.name, sick?.workload?.rank], ["notReady", "sick", undefined]);
  assert.deepEqual(near?.workload, { name: "near", region: "eu", zone: "a", rank: 0 });
  assert.deepEqual([near?.state, near?.requests, near?.health], ["healthy", 1, 1]);
});

test("a host name has its addresses, and when they were looked up", async () => {
  const start = Date.now();
  assert.equal(await send("/named"), 200);
  const named = (await list("?find=localhost")).find(({ kind }) => kind === "static");
  const [endpoint] = named?.endpoints.shown ?? [];
  const { addresses = [], foundAt = 0 } = endpoint?.name ?? {};
  assert.ok(addresses.includes("127.0.0.1"), JSON.stringify(endpoint));
  assert.ok(foundAt > start - 60_000 && foundAt <= Date.now() + 1000);
  assert.equal((await endpointOf("/api"))?.name, undefined, "an address is no name");
});

test("limits say how full they are, and how many requests they have rejected", async () => {
  await using upstream = await RawUpstream.listen();
  const http = { maxConnections: 1, maxPendingRequests: 1, maxRequests: 7 };
  const backends = [{ host: `127.0.0.1:${upstream.port}`, policies: { http } }];
  await using full = await TestGateway.start({
    binds: [{ port: 0, listeners: [{ routes: [{ name: "r", backends }] }] }],
  });
  const clients = await Promise.all(Array.from({ length: 3 }, () => RawPeer.connect(full.port())));
  for (const client of clients) client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const refused = await Promise.race(clients.map((client) => client.take("503").then(() => client)));
  const peer = await upstream.connection();
  await peer.message();
  const response = await fetch(`${full.url("admin")}/backends`);
  const [backend] = ((await response.json()) as BackendsAnswer).backends.shown;
  const [endpoint] = backend?.endpoints.shown ?? [];
  assert.deepEqual(endpoint?.pool, { active: 1, idle: 0, connecting: 0, waiting: 1 });
  assert.deepEqual(endpoint?.limits, { connections: 1, waiting: 1, requests: 7, rejected: 1 });
  assert.equal(endpoint?.active, 2);
  for (let i = 0; i < 2; i++) {
    peer.send(reply("answered"));
    if (i === 0) await peer.message();
  }
  for (const client of clients) if (client !== refused) await client.take("answered");
  for (const client of clients) client.socket.destroy();
});

test("long lists are shortened, unknown keys and parameters are refused", async () => {
  const { text } = await admin("/backends?limit=1");
  const { backends } = JSON.parse(text) as BackendsAnswer;
  assert.deepEqual([backends.total, backends.shown.length], [5, 1]);
  const missing = await admin("/backends/nobody");
  assert.equal(missing.status, 404);
  assert.match(missing.text, /no backend has the key "nobody"; \/backends lists them/);
  assert.equal((await admin("/backends?limit=0")).status, 400);
  assert.equal((await admin("/backends?state=failing")).status, 400);
});
