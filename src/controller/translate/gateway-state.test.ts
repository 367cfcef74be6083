import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  EndpointSlice,
  Gateway,
  GatewayClass,
  HttpRoute,
  Secret,
  Service,
  TracegatePolicy,
} from "../../kube/objects.ts";
import type { GatewayState } from "../../xds/resources.ts";
import { Graph } from "../graph/graph.ts";
import { desiredStatuses } from "../status/statuses.ts";
import { gatewayState } from "./gateway-state.ts";

const CLASS: GatewayClass = {
  apiVersion: "",
  kind: "GatewayClass",
  metadata: { name: "tracegate", namespace: "" },
  spec: { controllerName: "tracegate.dev/gateway-controller" },
};

function gateway(name: string, hostname?: string): Gateway {
  const listeners = [
    { name: "http", port: 80, protocol: "HTTP", ...(hostname !== undefined && { hostname }) },
    { name: "other", port: 81, protocol: "HTTP" },
  ];
  return {
    apiVersion: "",
    kind: "Gateway",
    metadata: { namespace: "apps", name },
    spec: { gatewayClassName: "tracegate", listeners },
  };
}

function route(name: string, parent: string, path: string, labels = {}): HttpRoute {
  const rules = [
    { matches: [{ path: { type: "Exact", value: path } }], backendRefs: [{ name: "shop", port: 80 }] },
  ] as const;
  return {
    apiVersion: "",
    kind: "HTTPRoute",
    metadata: { namespace: "apps", name, labels },
    spec: { parentRefs: [{ name: parent, sectionName: "http" }], rules },
  };
}

const SHOP: Service = {
  apiVersion: "",
  kind: "Service",
  metadata: { namespace: "apps", name: "shop" },
  spec: { clusterIP: "198.19.0.1", ports: [{ port: 80, targetPort: 8080 }] },
};

function endpoints(...addresses: readonly string[]): EndpointSlice {
  return {
    apiVersion: "",
    kind: "EndpointSlice",
    metadata: { namespace: "apps", name: "shop-1", labels: { "kubernetes.io/service-name": "shop" } },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ports: [{ port: 8080 }],
  };
}

function shop(): Graph {
  const graph = new Graph();
  for (const object of [CLASS, gateway("web"), gateway("api"), SHOP, endpoints("198.18.0.1", "198.18.0.2")])
    graph.set(object);
  for (let i = 0; i < 100; i++) graph.set(route(`route-${i}`, i % 2 === 0 ? "web" : "api", `/${i}`));
  return graph;
}

function stateOf(graph: Graph, name = "web"): GatewayState {
  const state = graph.query(gatewayState, `apps/${name}`);
  assert.ok(state);
  return state;
}

/** Names of what the stream would send, in terms of both maps. */
function changes(before: GatewayState, after: GatewayState): string[] {
  const names = new Set<string>();
  for (const part of ["resources", "addresses"] as const) {
    for (const [name, each] of after[part]) if (before[part].get(name) !== each) names.add(name);
    for (const name of before[part].keys()) if (!after[part].has(name)) names.add(`-${name}`);
  }
  return [...names].sort();
}

test("a change of one object changes only the resources derived from it", () => {
  const graph = shop();
  const first = stateOf(graph);
  assert.equal(first.resources.size, 2 + 2 + 50);
  assert.equal(first.addresses.size, 1 + 2);

  graph.set(route("route-2", "web", "/changed"));
  const second = stateOf(graph);
  assert.deepEqual(changes(first, second), ["route/apps/web.http/apps/route-2.00.http"]);

  graph.set(endpoints("198.18.0.2", "198.18.0.3"));
  const third = stateOf(graph);
  assert.deepEqual(
    changes(second, third).map((name) => name.replace(/Kubernetes.*\//, "")),
    ["-workload/198.18.0.1", "workload/198.18.0.3"],
  );

  graph.delete("HTTPRoute", "apps/route-4");
  assert.deepEqual(changes(third, stateOf(graph)), ["-route/apps/web.http/apps/route-4.00.http"]);
});

test("services that policies of listeners and their connections call are sent to the proxies", () => {
  const graph = shop();
  const before = stateOf(graph);
  for (const name of ["of-listener", "of-connections"])
    graph.set({ ...SHOP, metadata: { namespace: "apps", name } } satisfies Service);
  const call = (name: string) => ({ backendRef: { name, port: 80 } });
  graph.set({
    apiVersion: "",
    kind: "TracegatePolicy",
    metadata: { namespace: "apps", name: "calls" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "web" }],
      traffic: { phase: "PreRouting", extAuthz: call("of-listener") },
      frontend: { networkExtAuthz: call("of-connections") },
    },
  } as TracegatePolicy);
  const names = ["of-connections", "of-listener"].map((name) => `service/apps/${name}.apps.svc.cluster.local`);
  assert.deepEqual(
    changes(before, stateOf(graph)).filter((name) => name.startsWith("service/")),
    names,
  );
});

test("an unrelated change leaves the state of a Gateway the same object", () => {
  const graph = shop();
  const before = stateOf(graph);
  graph.set(route("route-1", "api", "/of-another-gateway"));
  graph.set(route("route-2", "web", "/2", { label: "irrelevant" }));
  graph.set({ ...gateway("web"), status: { conditions: [] } });
  graph.set({ apiVersion: "", kind: "Secret", metadata: { namespace: "apps", name: "other" } } satisfies Secret);
  assert.equal(stateOf(graph), before);
});

test("a status is the same object until it changes", () => {
  const graph = shop();
  const find = (name: string) => {
    const found = graph.query(desiredStatuses, "").find(({ kind, key }) => `${kind}/${key}` === name);
    assert.ok(found);
    return found;
  };
  const before = ["Gateway/apps/web", "Gateway/apps/api", "HTTPRoute/apps/route-0"].map(find);
  graph.set(route("new", "web", "/new"));
  const after = ["Gateway/apps/web", "Gateway/apps/api", "HTTPRoute/apps/route-0"].map(find);
  assert.notEqual(after[0], before[0]);
  assert.deepEqual(after.slice(1), before.slice(1));
  assert.equal(after[1], before[1]);
  assert.equal(after[2], before[2]);
});

test("a change of a listener changes the routes that depend on it", () => {
  const graph = shop();
  const before = stateOf(graph);
  graph.set(gateway("web", "shop.example.com"));
  const after = changes(before, stateOf(graph));
  assert.ok(after.includes("listener/apps/web.http"));
  assert.ok(!after.includes("listener/apps/web.other") && !after.includes("bind/bind/80"));
});

test("a Gateway that is deleted, or changes its class, has no state", () => {
  const graph = shop();
  stateOf(graph);
  graph.delete("Gateway", "apps/api");
  assert.equal(graph.query(gatewayState, "apps/api"), undefined);
  graph.set({ ...CLASS, spec: { controllerName: "example.com/other" } });
  assert.equal(graph.query(gatewayState, "apps/web"), undefined);
  assert.deepEqual(graph.query(desiredStatuses, ""), []);
});
