import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clusterOf } from "../../test/helpers/kube/cluster-of.ts";
import { AdminBadRequest } from "../admin/plane/plane.ts";
import { appRoot } from "../base/app-root.ts";
import type { Graph } from "./graph/graph.ts";
import { preview } from "./previews.ts";
import { desiredStatuses } from "./status/statuses.ts";
import { gatewayState } from "./translate/gateway-state.ts";

const OBJECTS = `
kind: Gateway
metadata: { name: web }
spec: { gatewayClassName: tracegate, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
kind: Service
metadata: { name: app, resourceVersion: "7" }
spec: { ports: [{ port: 80 }] }
---
kind: HTTPRoute
metadata: { name: shop, resourceVersion: "9" }
spec: { parentRefs: [{ name: web }], rules: [{ backendRefs: [{ name: app, port: 80 }] }] }
`;

const ROUTE = "route/default/web.http/default/shop.00.http";

/** The route with this Service, as a dry run returns it: with the version of the one in the cluster. */
function route(service: string, namespace = "default"): object {
  return {
    kind: "HTTPRoute",
    metadata: { name: "shop", namespace, resourceVersion: "9" },
    spec: { parentRefs: [{ name: "web" }], rules: [{ backendRefs: [{ name: service, port: 80 }] }] },
  };
}

test("an object takes the place of the one in the cluster, whose graph stays as it is", () => {
  const graph = clusterOf(OBJECTS);
  const before = [graph.query(gatewayState, "default/web"), graph.query(desiredStatuses, ""), graph.version] as const;
  const { state, report } = preview(graph, "default/web", [route("gone")], []);
  assert.match(JSON.stringify(state.resources.get(ROUTE)), /default\/gone|"invalid"/);
  assert.deepEqual(
    report.problems.map(({ kind, key, condition, reason }) => [kind, key, condition, reason]),
    [["HTTPRoute", "default/shop", "ResolvedRefs", "BackendNotFound"]],
  );
  assert.equal(graph.query(gatewayState, "default/web"), before[0]);
  assert.equal(graph.query(desiredStatuses, ""), before[1]);
  assert.equal(graph.version, before[2]);
});

test("an object that is the same changes nothing, and one that is met has no problem", () => {
  const graph = clusterOf(OBJECTS);
  const { state, report } = preview(graph, "default/web", [route("app")], []);
  assert.deepEqual(state, graph.query(gatewayState, "default/web"));
  assert.deepEqual(report, { problems: [], missing: [] });
});

test("what only a changed object refers to is missing unless it is given", () => {
  const graph = clusterOf(OBJECTS);
  const keys = [{ key: { secretKeyRef: { name: "keys", key: "acme" } } }];
  const policy = {
    kind: "TracegatePolicy",
    metadata: { name: "keys", namespace: "default" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "shop" }],
      traffic: { apiKey: { mode: "strict", keys } },
    },
  };
  const missing = [{ kind: "Secret", key: "default/keys" }];
  const applied = graph.copy();
  applied.set(policy as never);
  applied.query(gatewayState, "default/web");
  assert.deepEqual(
    preview(applied, "default/web", [policy], []).report.missing,
    [],
    "the controller has looked for it",
  );
  assert.deepEqual(preview(graph, "default/web", [policy], []).report.missing, missing);
  const secret = { kind: "Secret", metadata: { name: "keys", namespace: "default" }, data: { acme: btoa("k-123") } };
  const given = preview(graph, "default/web", [policy, secret], []);
  assert.deepEqual(given.report, { problems: [], missing: [] });
  assert.match(JSON.stringify(given.state.resources.get(ROUTE)), /"apiKey":{"keys":\[{"hash":/);
});

test("a certificate that cannot be used does not replace the one in use, as in the cluster", () => {
  const file = (name: string): string => readFileSync(`${appRoot}examples/recipes/certs/${name}`, "base64");
  const secret = (cert: string): object => ({
    kind: "Secret",
    metadata: { name: "web", namespace: "default" },
    data: { "tls.crt": cert, "tls.key": file("server.key") },
  });
  const listener = `{ name: http, port: 80, protocol: HTTPS, tls: { certificateRefs: [{ name: web }] } }`;
  const graph = clusterOf(`${OBJECTS.replace("{ name: http, port: 80, protocol: HTTP }", listener)}---
kind: Secret
metadata: { name: web }
data: { tls.crt: ${file("server.pem")}, tls.key: ${file("server.key")} }
`);
  const inUse = graph.query(gatewayState, "default/web")?.resources.get("listener/default/web.http");
  assert.ok(inUse !== undefined);
  const after = (cert: string) =>
    preview(graph, "default/web", [secret(cert)], []).state.resources.get("listener/default/web.http");
  assert.deepEqual(after("aGVsbG8="), inUse);
  graph.set(secret("aGVsbG8=") as never);
  assert.equal(graph.query(gatewayState, "default/web")?.resources.has("listener/default/web.http"), false);
  assert.deepEqual(after(file("server.pem")), inUse);
});

/** The problems that a preview finds, without their messages. */
function problemsOf(graph: Graph, objects: readonly object[]): unknown[] {
  const { problems } = preview(graph, "default/web", objects, []).report;
  return problems.map(({ kind, key, condition, reason }) => [kind, key, condition, reason].join(" "));
}

test("the problems of all kinds of objects, and of the changed ones alone", () => {
  const metadata = { name: "web", namespace: "default" };
  const listener = { name: "http", port: 80, protocol: "HTTP" };
  const traffic = { authorization: { rules: [{ deny: "true" }] } };
  const policy = (name: string): object => ({
    kind: "TracegatePolicy",
    metadata: { name: "shop", namespace: "default" },
    spec: { targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name }], traffic },
  });
  const graph = clusterOf(OBJECTS);
  const listeners = [listener, { ...listener, name: "again" }];
  const gateway = { kind: "Gateway", metadata, spec: { gatewayClassName: "tracegate", listeners } };
  assert.deepEqual(
    [...new Set(problemsOf(graph, [gateway]))],
    [
      "Gateway default/web Accepted ListenersNotValid",
      "Gateway default/web Programmed Invalid",
      "Gateway default/web Accepted HostnameConflict",
      "Gateway default/web Conflicted HostnameConflict",
      "Gateway default/web Programmed HostnameConflict",
    ],
  );
  assert.deepEqual(problemsOf(graph, [policy("gone")]), ["TracegatePolicy default/shop Attached Pending"]);
  const invalid = { filters: [{ type: "RequestMirror" }], matches: [{ path: { type: "Exact", value: "/a" } }] };
  const half = structuredClone(route("app")) as { spec: { rules: object[] } };
  half.spec.rules.push(invalid);
  assert.deepEqual(problemsOf(graph, [half]), ["HTTPRoute default/shop PartiallyInvalid UnsupportedValue"]);
  const broken = clusterOf(OBJECTS.replace("backendRefs: [{ name: app", "backendRefs: [{ name: gone"));
  const service = { kind: "Service", metadata: { name: "shop", namespace: "default" }, spec: { ports: [] } };
  assert.deepEqual(problemsOf(broken, [service, policy("shop")]), [], "the route is as it was");
});

test("other things than objects of people are rejected, each with its name", () => {
  const graph = clusterOf(OBJECTS);
  const rejected = (message: RegExp, objects: readonly unknown[], gateway = "default/web", namespaces: string[] = []) =>
    assert.throws(
      () => preview(graph, gateway, objects, namespaces),
      (error) => error instanceof AdminBadRequest && message.test(error.message),
    );
  rejected(/^object 2: kind, metadata.name/, [route("app"), "text"]);
  rejected(/^Pod a: the controller reads no such objects/, [{ kind: "Pod", metadata: { name: "a", namespace: "b" } }]);
  rejected(/^constructor a: the controller reads no/, [{ kind: "constructor", metadata: { name: "a" } }]);
  const shapeless = { kind: "HTTPRoute", metadata: { name: "shop", namespace: "default" } };
  rejected(/^the objects must be as the API server returns them/, [shapeless]);
  rejected(/^HTTPRoute shop: metadata.namespace is missing/, [route("app", "")]);
  rejected(
    /^HTTPRoute shop: the controller does not watch the namespace other/,
    [route("app", "other")],
    "default/web",
    ["default"],
  );
  const ofOthers = { kind: "GatewayClass", metadata: { name: "tracegate" }, spec: { controllerName: "others" } };
  rejected(/^no Gateway default\/web of this controller/, [ofOthers]);
  rejected(/^no Gateway default\/other of this controller/, [route("app")], "default/other");
});

test("of Gateways that share proxies the state is that of all, and the fleet the one that serves now", () => {
  const graph = clusterOf(`
kind: GatewayClass
metadata: { name: shared }
spec:
  controllerName: tracegate.dev/gateway-controller
  parametersRef: { group: tracegate.dev, kind: TracegateParameters, name: shared, namespace: default }
---
kind: TracegateParameters
metadata: { name: shared }
spec: { mergeGateways: {} }
---
kind: Gateway
metadata: { name: web }
spec: { gatewayClassName: shared, listeners: [{ name: http, port: 80, protocol: HTTP, hostname: a.example.com }] }
---
kind: Gateway
metadata: { name: other }
spec: { gatewayClassName: shared, listeners: [{ name: http, port: 80, protocol: HTTP, hostname: b.example.com }] }
`);
  const { fleet, state } = preview(graph, "default/web", [route("gone")], []);
  assert.equal(fleet, "GatewayClass/shared");
  const names = [...state.resources.keys()].filter((name) => !name.startsWith("bind/"));
  assert.deepEqual(names.sort(), ["listener/default/other.http", "listener/default/web.http", ROUTE]);
});
