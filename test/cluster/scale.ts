/**
 * npm run bench:cluster [-- [--no-image] [--no-install] [--routes 3000] [--gateways 10] [--samples 200]]
 * Measures the controller and its proxies with many HTTPRoutes in the test cluster (see run.ts): the time from writing a route to
 * traffic on it, memory and CPU of the controller, status writes, the memory that routes add to a proxy, and how long other requests wait
 * while many routes change.
 *
 * Processes are read from /proc, so this runs on the node of the cluster.
 */
import { readdirSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { objectKey } from "../../src/base/object-key.ts";
import { resourcePath } from "../../src/kube/client.ts";
import { findCluster, HttpKubeClient } from "../../src/kube/connect.ts";
import type { HttpRoute } from "../../src/kube/objects.ts";
import { RESOURCES } from "../../src/kube/resources.ts";
import { get, Load } from "./lib/http.ts";
import { echoYaml, gatewayYaml, namespaceYaml } from "./lib/objects.ts";
import { prepareCluster, reexecInside } from "./lib/setup.ts";
import { apply, eventually, gatewayAddress, kubectl } from "./lib/tools.ts";

const { values } = parseArgs({
  options: {
    "no-image": { type: "boolean", default: false },
    "no-install": { type: "boolean", default: false },
    routes: { type: "string", default: "3000" },
    gateways: { type: "string", default: "10" },
    samples: { type: "string", default: "200" },
  },
});
await reexecInside(import.meta.filename, () =>
  prepareCluster({ image: !values["no-image"], install: !values["no-install"] }),
);

const NS = "bench-scale";
const ROUTES = Number(values.routes);
const GATEWAYS = Number(values.gateways);
const SAMPLES = Number(values.samples);
/** Routes of the Gateway whose status writes are counted. */
const ATTACHED = 1000;
/** Milliseconds between samples, for the statuses of the one before. */
const SETTLE_MS = 200;
/** Routes that change at once, of those of one Gateway, while requests for others are measured. */
const CHANGED = 300;
const REQUESTS_PER_SECOND = 50;
/** Seconds over which an idle controller is observed. */
const IDLE_SECONDS = 30;

const client = new HttpKubeClient(await findCluster(process.env), { writesPerSecond: 2000, writeBurst: 2000 });
const collection = resourcePath(RESOURCES.HTTPRoute, NS);

function row(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(62)} ${value}\n`);
}

function routeOf(name: string, gateway: string): HttpRoute {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name, namespace: NS },
    spec: {
      parentRefs: [{ name: gateway }],
      hostnames: [`${name}.example.com`],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: "/" }, headers: [{ name: "x-env", value: "bench" }] }],
          backendRefs: [{ name: "echo", port: 80 }],
        },
      ],
    },
  };
}

async function inParallel(count: number, work: (index: number) => Promise<void>, workers = 24): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: workers }, run));
}

async function createRoutes(prefix: string, count: number, gatewayOf: (index: number) => string): Promise<void> {
  await inParallel(count, async (i) => {
    await client.request("POST", collection, { body: routeOf(`${prefix}-${i}`, gatewayOf(i)) });
  });
}

async function deleteRoutes(prefix: string, count: number): Promise<void> {
  await inParallel(count, async (i) => {
    await client.request("DELETE", resourcePath(RESOURCES.HTTPRoute, NS, `${prefix}-${i}`));
  });
}

const headers = { "x-env": "bench" };

function serves(address: string, host: string, agent?: Agent): Promise<boolean> {
  return get({ address, host, headers, ...(agent !== undefined && { agent }) }).then(({ status }) => status === 200);
}

interface Process {
  readonly pid: number;
  readonly command: string;
  readonly gateway: string;
}

/** Processes of tracegate in the containers of this node. */
function processes(): Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
        const environment = readFileSync(`/proc/${name}/environ`, "utf8").split("\0");
        const of = (variable: string): string =>
          environment.find((each) => each.startsWith(`${variable}=`))?.slice(variable.length + 1) ?? "";
        const ours = /tracegate/.test(command) && of("KUBERNETES_SERVICE_HOST") !== "";
        return ours ? [{ pid: Number(name), command, gateway: `${of("NAMESPACE")}/${of("GATEWAY")}` }] : [];
      } catch {
        return [];
      }
    });
}

function controllerPid(): number {
  const found = processes().find(({ command }) => / controller( |$)/.test(command));
  if (found === undefined) throw new Error("no controller process on this machine");
  return found.pid;
}

function proxyPid(gateway: string): number {
  const found = processes().find((each) => each.gateway === `${NS}/${gateway}`);
  if (found === undefined) throw new Error(`no proxy of ${gateway} on this machine`);
  return found.pid;
}

/** MiB */
function memoryOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** Seconds of CPU that a process has used; the kernel counts hundredths. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function quantile(sorted: readonly number[], q: number): string {
  return `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0).toFixed(0)} ms`;
}

/** Milliseconds from the request that writes a route to the first answer of its backend; then the route is deleted. */
async function timeToTraffic(gateway: string, address: string, index: number): Promise<number> {
  const name = `probe-${index}`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const startedAt = performance.now();
  await client.request("POST", collection, { body: routeOf(name, gateway) });
  await eventually(`traffic on ${name}`, () => serves(address, `${name}.example.com`, agent), 30, 2);
  const elapsed = performance.now() - startedAt;
  agent.destroy();
  // The next sample must not wait for this deletion.
  await client.request("DELETE", resourcePath(RESOURCES.HTTPRoute, NS, name));
  await eventually(`no traffic on ${name}`, async () => !(await serves(address, `${name}.example.com`)), 30, 10);
  await delay(SETTLE_MS);
  return elapsed;
}

/** Counts the events of a watch by object until it is stopped; each write of a status is one. */
function countChanges(path: string): { readonly counts: Map<string, number>; readonly stop: () => void } {
  const counts = new Map<string, number>();
  const abort = new AbortController();
  const follow = async (): Promise<void> => {
    const { metadata } = await client.request<{ metadata: { resourceVersion: string } }>("GET", path);
    let { resourceVersion } = metadata;
    // A server may end a watch at any time; the next one resumes after the last event.
    while (!abort.signal.aborted)
      for await (const { type, object } of client.watch<HttpRoute>(path, { resourceVersion }, abort.signal)) {
        if (type === "ERROR") throw new Error(`the watch of ${path} failed: ${JSON.stringify(object)}`);
        resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
        if (type !== "MODIFIED") continue;
        const key = objectKey(object.metadata);
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
  };
  void follow().catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  return { counts, stop: () => abort.abort() };
}

/** Runs `work` under requests through the gateway, and as many straight to the backend, which show what the machine itself costs. */
async function latencyDuring(work: () => Promise<unknown>, address: string, host: string): Promise<string> {
  const backendAddress = await kubectl("-n", NS, "get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}");
  const loads = [{ address, host, headers }, { address: backendAddress.trim() }].map(
    (wanted) => new Load(wanted, 8, REQUESTS_PER_SECOND),
  );
  await work();
  await Promise.all(loads.map((load) => load.stop()));
  const [gateway, backend] = loads.map(({ milliseconds, failures }) => {
    const sorted = milliseconds.toSorted((a, b) => a - b);
    return `${quantile(sorted, 0.5)} / ${quantile(sorted, 0.99)}, ${failures.length} failed`;
  });
  return `${gateway}; straight to the backend ${backend}`;
}

async function changeRoutes(prefix: string, gateway: string, address: string, version: string): Promise<void> {
  await inParallel(CHANGED, async (i) => {
    const { spec } = routeOf(`${prefix}-${i}`, gateway);
    const filters = [
      { type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "x-version", value: version }] } },
    ];
    await client.request("PATCH", resourcePath(RESOURCES.HTTPRoute, NS, `${prefix}-${i}`), {
      body: { spec: { rules: spec.rules?.map((rule) => ({ ...rule, filters })) } },
      contentType: "application/merge-patch+json",
    });
  });
  await eventually("the changed routes", async () => {
    const { body } = await get({ address, host: `${prefix}-${CHANGED - 1}.example.com`, headers });
    return body.includes(version);
  });
}

const gateways = Array.from({ length: GATEWAYS }, (_, i) => `gateway-${i}`);
try {
  await apply(
    namespaceYaml(NS) + echoYaml(NS, "echo") + [...gateways, "crowded"].map((name) => gatewayYaml(NS, name)).join(""),
  );
  const addresses = new Map<string, string>();
  for (const name of [...gateways, "crowded"]) addresses.set(name, await gatewayAddress(NS, name, 300));
  const crowded = addresses.get("crowded") ?? "";
  const emptyProxy = memoryOf(proxyPid("crowded"));
  row("controller, resident, no routes", `${memoryOf(controllerPid()).toFixed(0)} MiB`);

  // Status writes: 1,000 routes attach to one Gateway.
  const routeChanges = countChanges(collection);
  const gatewayChanges = countChanges(resourcePath(RESOURCES.Gateway, NS));
  await delay(1000);
  await createRoutes("attached", ATTACHED, () => "crowded");
  await eventually("the last attached route", () => serves(crowded, `attached-${ATTACHED - 1}.example.com`), 120);
  await eventually("statuses", async () => routeChanges.counts.size >= ATTACHED, 120).catch((error: unknown) => {
    throw new Error(`only ${routeChanges.counts.size} of ${ATTACHED} routes have a status`, { cause: error });
  });
  await delay(5000);
  row(
    `status writes per route, ${ATTACHED} attached (most of one route)`,
    `${([...routeChanges.counts.values()].reduce((a, b) => a + b, 0) / ATTACHED).toFixed(2)} (${Math.max(...routeChanges.counts.values())})`,
  );
  row("status writes on their Gateway", String(gatewayChanges.counts.get(`${NS}/crowded`) ?? 0));
  routeChanges.stop();
  gatewayChanges.stop();

  const other = `attached-${ATTACHED - 1}.example.com`;
  row("requests while nothing changes, p50 / p99", await latencyDuring(() => delay(5000), crowded, other));
  for (const version of ["version-1", "version-2", "version-3"])
    row(
      `requests while ${CHANGED} of ${ATTACHED} other routes change, p50 / p99`,
      await latencyDuring(() => changeRoutes("attached", "crowded", crowded, version), crowded, other),
    );

  // The memory of a proxy with all routes.
  await createRoutes("more", ROUTES - ATTACHED, () => "crowded");
  await eventually("the last route", () => serves(crowded, `more-${ROUTES - ATTACHED - 1}.example.com`), 120);
  await delay(5000);
  row(
    `proxy, resident: empty, with ${ROUTES} routes`,
    `${emptyProxy.toFixed(0)} MiB, ${memoryOf(proxyPid("crowded")).toFixed(0)} MiB`,
  );
  const dense: number[] = [];
  for (let i = 0; i < SAMPLES / 4; i++) dense.push(await timeToTraffic("crowded", crowded, i));
  dense.sort((a, b) => a - b);
  row(
    `write to traffic, ${ROUTES} routes on one Gateway, p50 / p99`,
    `${quantile(dense, 0.5)} / ${quantile(dense, 0.99)}`,
  );
  await deleteRoutes("attached", ATTACHED);
  await deleteRoutes("more", ROUTES - ATTACHED);

  // 3,000 routes on 10 Gateways.
  await createRoutes("route", ROUTES, (i) => gateways[i % GATEWAYS] ?? "");
  for (const [i, name] of gateways.entries()) {
    const last = ROUTES - GATEWAYS + i;
    await eventually(`routes of ${name}`, () => serves(addresses.get(name) ?? "", `route-${last}.example.com`), 120);
  }
  await delay(10_000);
  const samples: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const gateway = gateways[i % GATEWAYS] ?? "";
    samples.push(await timeToTraffic(gateway, addresses.get(gateway) ?? "", i));
  }
  samples.sort((a, b) => a - b);
  row(
    `write to traffic, ${ROUTES} routes on ${GATEWAYS} Gateways, p50 / p99`,
    `${quantile(samples, 0.5)} / ${quantile(samples, 0.99)}`,
  );
  row(`controller, resident, ${ROUTES} routes`, `${memoryOf(controllerPid()).toFixed(0)} MiB`);
  await delay(10_000);
  const before = cpuOf(controllerPid());
  await delay(IDLE_SECONDS * 1000);
  row(
    "controller, CPU when nothing changes",
    `${(((cpuOf(controllerPid()) - before) / IDLE_SECONDS) * 100).toFixed(2)} %`,
  );
} finally {
  await kubectl("delete", "namespace", NS, "--wait=false");
  client.close();
}
