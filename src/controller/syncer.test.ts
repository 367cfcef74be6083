import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/helpers/until.ts";
import { LogOutput } from "../base/log.ts";
import { parseLogFilter } from "../base/log-filter.ts";
import type { EndpointSlice, Gateway, GatewayClass, HttpRoute } from "../kube/objects.ts";
import type { GatewayState } from "../xds/resources.ts";
import { Graph } from "./graph/graph.ts";
import { controllerIdentity } from "./graph/inputs.ts";
import { ReconcileMetrics } from "./metrics.ts";
import { Syncer } from "./syncer.ts";

const API = "gateway.networking.k8s.io/v1";
const CONTROLLER = "tracegate.dev/gateway-controller";
const CLASS: GatewayClass = {
  apiVersion: API,
  kind: "GatewayClass",
  metadata: { name: "tracegate", namespace: "" },
  spec: { controllerName: CONTROLLER },
};

function gateway(name: string): Gateway {
  const listeners = [{ name: "http", port: 8080, protocol: "HTTP" }] as const;
  return {
    apiVersion: API,
    kind: "Gateway",
    metadata: { namespace: "apps", name, generation: 1 },
    spec: { gatewayClassName: "tracegate", listeners },
  };
}

function route(name: string): HttpRoute {
  return {
    apiVersion: API,
    kind: "HTTPRoute",
    metadata: { namespace: "apps", name },
    spec: { parentRefs: [{ name: "web" }], rules: [{ backendRefs: [{ name: "shop", port: 80 }] }] },
  };
}

function slice(address: string): EndpointSlice {
  const endpoints = [{ addresses: [address] }];
  const metadata = { namespace: "apps", name: "shop-1" };
  return { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", metadata, endpoints };
}

interface Publication {
  readonly gateway: string;
  readonly state: GatewayState | undefined;
}

function start(write: () => void = () => {}) {
  const graph = new Graph();
  const published: Publication[] = [];
  const lines: string[] = [];
  const runs = { count: 0 };
  const syncer = new Syncer({
    graph,
    publish: (gateway, state) => published.push({ gateway, state }),
    write: () => {
      runs.count++;
      write();
    },
    metrics: new ReconcileMetrics(),
    log: new LogOutput(parseLogFilter("info"), "text", (line) => lines.push(line)).logger("tracegate/translator"),
  });
  graph.set(controllerIdentity(CONTROLLER));
  syncer.set(CLASS);
  return { graph, syncer, published, lines, runs };
}

test("nothing is sent or written before everything has been listed", async (t) => {
  const { syncer, published, runs } = start();
  t.after(() => syncer.stop());
  syncer.set(gateway("web"));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([published.length, runs.count], [0, 0]);
  syncer.start();
  assert.deepEqual(
    published.map(({ gateway }) => gateway),
    ["apps/web"],
  );
  await until(() => runs.count === 1, "the writers");
});

test("a burst of changes becomes one state, and a change that concerns no Gateway none", async (t) => {
  const { syncer, published } = start();
  t.after(() => syncer.stop());
  syncer.set(gateway("web"));
  syncer.start();
  for (let i = 0; i < 50; i++) syncer.set(route(`r${i}`));
  await until(() => published.length === 2, "the state");
  const routes = [...(published[1]?.state?.resources.keys() ?? [])].filter((name) => name.startsWith("route/"));
  assert.equal(routes.length, 50);
  syncer.set({ apiVersion: "v1", kind: "Namespace", metadata: { name: "elsewhere", namespace: "" } });
  syncer.set(gateway("other"));
  await until(() => published.length > 2, "the state of the other");
  assert.deepEqual(
    published.slice(2).map(({ gateway }) => gateway),
    ["apps/other"],
  );
});

test("a Gateway that is deleted, or that another controller gets, loses its state", async (t) => {
  const { syncer, published } = start();
  t.after(() => syncer.stop());
  for (const name of ["web", "api"]) syncer.set(gateway(name));
  syncer.start();
  published.length = 0;
  syncer.delete("Gateway", "apps/web");
  await until(() => published.length === 1, "the end of the first");
  syncer.set({ ...CLASS, spec: { controllerName: "example.com/other" } });
  await until(() => published.length === 2, "the end of the second");
  assert.deepEqual(published, [
    { gateway: "apps/web", state: undefined },
    { gateway: "apps/api", state: undefined },
  ]);
});

test("a defect in one Gateway keeps its last state and stops no other; an error of writers stops no state", async (t) => {
  const { syncer, published, lines } = start(() => {
    throw new Error("writers are broken");
  });
  t.after(() => syncer.stop());
  for (const name of ["api", "web"]) syncer.set(gateway(name));
  syncer.start();
  assert.equal(published.length, 2);
  const broken = { ...gateway("api"), spec: null } as unknown as Gateway;
  syncer.set(broken);
  const [other] = gateway("web").spec.listeners ?? [];
  assert.ok(other !== undefined);
  syncer.set({ ...gateway("web"), spec: { gatewayClassName: "tracegate", listeners: [{ ...other, port: 8081 }] } });
  await until(() => published.length === 3, "the state of the other");
  assert.equal(published[2]?.gateway, "apps/web");
  assert.ok(syncer.published.has("apps/api"));
  syncer.set({ ...broken, metadata: { ...broken.metadata, generation: 2 } });
  syncer.set(gateway("web"));
  await until(() => published.length === 4, "the next state of the other");
  assert.equal(lines.filter((line) => line.includes("translation failed")).length, 1, "the log says so once");
  await until(() => lines.some((line) => line.includes("statuses or deployments could not be computed")), "the log");
});

test("Gateways that share proxies have one state; a defect in one keeps its last part and stops no other", async (t) => {
  const { syncer, published } = start();
  t.after(() => syncer.stop());
  const parametersRef = { group: "tracegate.dev", kind: "TracegateParameters", name: "shared", namespace: "apps" };
  syncer.set({ ...CLASS, spec: { ...CLASS.spec, parametersRef } });
  const metadata = { namespace: "apps", name: "shared" };
  const kind = "TracegateParameters";
  syncer.set({ apiVersion: "tracegate.dev/v1alpha1", kind, metadata, spec: { mergeGateways: {} } } as never);
  const member = (name: string, port: number): Gateway => ({
    ...gateway(name),
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port, protocol: "HTTP" }] },
  });
  for (const [i, name] of ["api", "web"].entries()) syncer.set(member(name, 8080 + i));
  syncer.start();
  const shown = () => {
    const [last] = published.slice(-1);
    return [last?.gateway, ...(last?.state?.resources.keys() ?? [])].join(" ");
  };
  assert.equal(published.length, 1);
  assert.equal(
    shown(),
    "GatewayClass/tracegate bind/bind/8080 listener/apps/api.http bind/bind/8081 listener/apps/web.http",
  );
  syncer.set({ ...member("api", 8080), spec: null } as unknown as Gateway);
  syncer.set(member("web", 9000));
  await until(() => shown().includes("9000"), "the change of the other");
  assert.match(shown(), /^GatewayClass\/tracegate bind\/bind\/8080 listener\/apps\/api.http /);
  syncer.set(member("api", 8080));
  syncer.delete(kind, "apps/shared");
  await until(() => published.some((each) => each.gateway === "apps/web"), "a state of its own");
  assert.deepEqual(published.at(-1), { gateway: "GatewayClass/tracegate", state: undefined });
  syncer.delete("Gateway", "apps/api");
  await until(() => published.at(-1)?.gateway === "apps/api", "the end of one");
  const before = published.length;
  syncer.set({ ...member("api", 8080), spec: null } as unknown as Gateway);
  syncer.set(member("web", 9001));
  await until(() => published.length > before, "the change of the other");
  assert.deepEqual(
    published.slice(before).map((each) => each.gateway),
    ["apps/web"],
    "a new Gateway has no last state",
  );
});

test("while routes keep changing there are few runs, the last change is not lost, endpoints do not wait, and after a calm the next change takes effect at once", (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const pass = (ms: number): void => {
    for (; ms > 0; ms--, now++) t.mock.timers.tick(1);
  };
  const { syncer, published } = start();
  t.after(() => syncer.stop());
  syncer.set(gateway("web"));
  syncer.start();
  const changes = 100;
  for (const round of [1, 2]) {
    pass(1000);
    const before = published.length;
    for (let i = 1; i <= changes; i++) {
      syncer.set(route(`${round}-${i}`));
      pass(5);
      if (i <= 2) assert.equal(published.length, before + i, "the first two take effect at once");
    }
    pass(50);
    const { length } = published;
    assert.ok(length - before < changes / 5, `${length - before} runs`);
    const names = [...(published.at(-1)?.state?.resources.keys() ?? [])];
    assert.equal(names.filter((name) => name.startsWith("route/")).length, round * changes);
    // Other changes wait for the end of the pause, unless endpoints change.
    pass(50);
    syncer.set(route(`${round}-more`));
    pass(2);
    syncer.set(route(`${round}-last`));
    pass(10);
    assert.equal(published.length, length + 1);
    syncer.set(slice(`10.0.0.${round}`));
    pass(2);
    assert.equal(published.length, length + 2);
    pass(1000);
    assert.equal(published.length, length + 2, "nothing is left to do");
    for (const name of ["more", "last"]) syncer.delete("HTTPRoute", `apps/${round}-${name}`);
  }
});
