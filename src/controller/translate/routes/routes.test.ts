import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Anything, cluster } from "../fixtures/cluster.ts";
import { gatewayState } from "../gateway-state.ts";
import { routeModel } from "./routes.ts";

const GATEWAY: Anything = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { namespace: "apps", name: "web" },
  spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
};
const SERVICE: Anything = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { namespace: "apps", name: "shop" },
  spec: { ports: [{ port: 80, targetPort: 8080 }] },
};

function httpRoute(name: string, version: string, path = "/"): Anything {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { namespace: "apps", name, resourceVersion: version, creationTimestamp: "2026-01-02T03:04:05Z" },
    spec: {
      parentRefs: [{ name: "web" }],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: path } }], backendRefs: [{ name: "shop", port: 80 }] }],
    },
  };
}

function slice(version: string, ...addresses: string[]): Anything {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace: "apps",
      name: "shop-1",
      resourceVersion: version,
      labels: { "kubernetes.io/service-name": "shop" },
    },
    addressType: "IPv4",
    endpoints: addresses.map((address) => ({
      addresses: [address],
      conditions: { ready: true },
      targetRef: { kind: "Pod", name: `pod-${address}`, namespace: "apps" },
    })),
    ports: [{ name: "", port: 8080, protocol: "TCP" }],
  };
}

describe("incremental", () => {
  test("a new endpoint changes its service, but no route and no other workload", () => {
    const graph = cluster(GATEWAY, SERVICE, httpRoute("shop", "1"), slice("1", "10.0.0.1"));
    const before = graph.query(gatewayState, "apps/web");
    const route = graph.query(routeModel, "HTTPRoute/apps/shop");
    graph.set(slice("2", "10.0.0.1", "10.0.0.2"));
    const after = graph.query(gatewayState, "apps/web");
    assert.ok(before !== undefined && after !== undefined);
    assert.equal(graph.query(routeModel, "HTTPRoute/apps/shop"), route);
    const first = "workload/Kubernetes//Pod/apps/pod-10.0.0.1";
    assert.ok(before.addresses.has(first));
    assert.equal(after.addresses.get(first), before.addresses.get(first));
    assert.ok(after.addresses.has("workload/Kubernetes//Pod/apps/pod-10.0.0.2"));
    for (const [name, resource] of before.resources) assert.equal(after.resources.get(name), resource, name);
  });

  test("a change of a route leaves the others unchanged", () => {
    const graph = cluster(GATEWAY, SERVICE, httpRoute("a", "1", "/a"), httpRoute("b", "1", "/b"));
    const before = graph.query(gatewayState, "apps/web");
    graph.set(httpRoute("a", "2", "/other"));
    const after = graph.query(gatewayState, "apps/web");
    assert.ok(before !== undefined && after !== undefined);
    const a = "route/apps/web.http/apps/a.00.http";
    const b = "route/apps/web.http/apps/b.00.http";
    assert.ok(before.resources.has(a) && before.resources.has(b));
    assert.equal(after.resources.get(b), before.resources.get(b));
    assert.notEqual(after.resources.get(a), before.resources.get(a));
  });
});

test("a route becomes one rule at each listener, ordered by age, namespace, name and rule", () => {
  const graph = cluster(GATEWAY, SERVICE, httpRoute("shop", "1", "/shop"));
  const { parents, services } = graph.query(routeModel, "HTTPRoute/apps/shop");
  assert.deepEqual(services, ["apps/shop.apps.svc.cluster.local"]);
  assert.deepEqual(parents[0]?.attachments, [
    {
      listener: "apps/web.http",
      tcpRoutes: [],
      routes: [
        {
          order: "1767323045/apps/shop 00",
          route: {
            key: "apps/shop.00.http",
            name: "shop",
            namespace: "apps",
            origin: { object: { kind: "HTTPRoute", namespace: "apps", name: "shop" }, path: ["spec", "rules", 0] },
            createdAt: 1767323045,
            hostnames: [],
            matches: [{ path: { type: "pathPrefix", value: "/shop" }, headers: [], query: [] }],
            policies: {},
            backends: [
              {
                key: "/apps/shop.00.http/backend0",
                weight: 1,
                target: { type: "service", key: "apps/shop.apps.svc.cluster.local", port: 80 },
                policies: {},
              },
            ],
          },
        },
      ],
    },
  ]);
});
