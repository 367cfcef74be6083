/** How Gateways move between proxies of their own and shared ones: what is deployed, what states are sent, and what statuses say. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedDeploymentName } from "../base/manifest.ts";
import { controllerSettings } from "../base/settings.ts";
import { gatewayProgramming } from "../status/gateway-programmed.ts";
import { desiredStatuses } from "../status/statuses.ts";
import { cluster } from "../translate/fixtures/cluster.ts";
import { accountOf, fleetsOf } from "../translate/model/fleets.ts";
import { deploymentsQuery } from "./deployments.ts";

const PARAMETERS = { group: "tracegate.dev", kind: "TracegateParameters", name: "shared", namespace: "edge" };
const CLASS = { controllerName: "tracegate.dev/gateway-controller", parametersRef: PARAMETERS };

/** Two Gateways of class `tracegate`, which have proxies of their own, with parameters that merge them. */
function merging() {
  const graph = cluster();
  const set = (kind: string, name: string, namespace: string, rest: object): void =>
    graph.set({ apiVersion: "", kind, metadata: { name, namespace }, ...rest } as never);
  const gatewayClass = (spec: object) => set("GatewayClass", "tracegate", "", { spec });
  const pod = (namespace: string, name: string, label: string, ready: boolean) => {
    const metadata = { name: `${name}-1`, namespace, labels: { [label]: name } };
    const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] };
    graph.set({ apiVersion: "v1", kind: "Pod", metadata, status } as never);
  };
  const own = (namespace: string, ready = true) =>
    pod(namespace, "web", "gateway.networking.k8s.io/gateway-name", ready);
  const shared = (ready: boolean) => pod("edge", "tracegate", "tracegate.dev/owning-gateway-class", ready);
  const parameters = (spec: object) => set("TracegateParameters", "shared", "edge", { spec });
  const service = (namespace: string, name: string, clusterIP: string) =>
    set("Service", name, namespace, { spec: { clusterIP } });
  parameters({ mergeGateways: { namespaces: { from: "All" } } });
  for (const [i, namespace] of ["a", "b"].entries()) {
    const listeners = [{ name: "http", port: 80 + i, protocol: "HTTP", hostname: `${namespace}.example.com` }];
    set("Gateway", "web", namespace, { spec: { gatewayClassName: "tracegate", listeners } });
    own(namespace);
    service(namespace, "web", `10.0.0.${i}`);
  }
  service("edge", sharedDeploymentName("tracegate"), "10.0.0.9");
  const settings = controllerSettings({ TRACEGATE_XDS_MODE: "plaintext" }, "1.2.3", "host");
  const query = deploymentsQuery({ settings, version: "1.2.3", xdsCa: () => undefined });
  const actions = () => graph.query(query, "").map(({ key, action }) => `${action} ${key}`);
  const ports = () =>
    graph
      .query(query, "")
      .find(({ key }) => key === "GatewayClass/tracegate")
      ?.objects.filter(({ kind }) => kind === "Service")
      .map(({ spec }) =>
        (spec as { readonly ports: readonly { readonly port: number }[] }).ports.map(({ port }) => port),
      );
  const objects = (fleet: string) => {
    const found = graph.query(query, "").find(({ key }) => key === fleet);
    const all = [...(found?.objects ?? []), ...(found?.secret === undefined ? [] : [found.secret])];
    return all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  };
  const programming = (namespace: string) => {
    const { condition, addresses } = graph.query(gatewayProgramming, `${namespace}/web`);
    return [condition.status, ...addresses.map(({ value }) => value)].join(" ");
  };
  const fleets = (namespace: string) => graph.query(fleetsOf, `${namespace}/web`).map(({ key }) => key);
  const serving = (...gateways: readonly string[]) =>
    graph.set({
      apiVersion: "",
      kind: "ProxyReport",
      metadata: { namespace: "GatewayClass", name: "tracegate" },
      rejections: [],
      serving: gateways,
    });
  return { graph, gatewayClass, parameters, own, shared, actions, ports, objects, programming, fleets, serving };
}

test("proxies of its own serve a Gateway until shared ones have acknowledged it", () => {
  const { graph, gatewayClass, shared, actions, ports, programming, fleets, serving } = merging();
  assert.deepEqual(actions(), ["apply a/web", "apply b/web", "remove GatewayClass/tracegate"]);
  gatewayClass(CLASS);
  assert.deepEqual(actions(), ["keep a/web", "keep b/web", "apply GatewayClass/tracegate"]);
  assert.deepEqual(ports(), [[80, 81]]);
  assert.deepEqual(fleets("a"), ["GatewayClass/tracegate", "a/web"]);
  shared(false);
  assert.equal(programming("a"), "True 10.0.0.0");
  shared(true);
  serving("a/web");
  assert.deepEqual(actions(), ["remove a/web", "keep b/web", "apply GatewayClass/tracegate"]);
  assert.deepEqual([programming("a"), programming("b")], ["True 10.0.0.9", "True 10.0.0.1"]);
  graph.delete("Pod", "a/web-1");
  assert.deepEqual(fleets("a"), ["GatewayClass/tracegate"]);
  graph.delete("Pod", "b/web-1");
  assert.equal(programming("b"), "False 10.0.0.9");
  serving("a/web", "b/web");
  assert.equal(programming("b"), "True 10.0.0.9");
});

test("shared proxies stay until all Gateways have ready ones of their own, and go after the last Gateway", () => {
  const { graph, gatewayClass, parameters, own, shared, actions } = merging();
  gatewayClass(CLASS);
  shared(true);
  for (const namespace of ["a", "b"]) graph.delete("Pod", `${namespace}/web-1`);
  parameters({});
  own("a");
  own("b", false);
  assert.deepEqual(actions(), ["apply a/web", "apply b/web", "keep GatewayClass/tracegate"]);
  own("b");
  assert.deepEqual(actions(), ["apply a/web", "apply b/web", "remove GatewayClass/tracegate"]);
  parameters({ mergeGateways: { namespaces: { from: "All" } } });
  for (const namespace of ["a", "b"]) graph.delete("Gateway", `${namespace}/web`);
  assert.deepEqual(actions(), ["remove GatewayClass/tracegate"]);
});

test("nothing moves while the class or its parameters are missing, or while other parameters are invalid", () => {
  const { graph, gatewayClass, parameters, own, shared, actions, fleets } = merging();
  gatewayClass(CLASS);
  shared(true);
  for (const namespace of ["a", "b"]) graph.delete("Pod", `${namespace}/web-1`);
  graph.set({
    apiVersion: "",
    kind: "ListenerSet",
    metadata: { namespace: "a", name: "more" },
    spec: { parentRef: { name: "web" }, listeners: [] },
  });
  const written = () =>
    graph.query(desiredStatuses, "").flatMap(({ kind, key }) => (kind === "GatewayClass" ? [] : `${kind} ${key}`));
  const all = ["Gateway a/web", "Gateway b/web", "ListenerSet a/more"];
  const kept = ["keep a/web", "keep b/web", "keep GatewayClass/tracegate"];
  parameters({ mergeGateways: { namespaces: { from: "All" } }, rawConfig: { unknown: 1 } });
  assert.deepEqual(actions(), ["remove a/web", "remove b/web", "keep GatewayClass/tracegate"]);
  assert.deepEqual(fleets("a"), ["GatewayClass/tracegate"], "changes of routes still arrive");
  assert.deepEqual(written(), all);
  graph.delete("TracegateParameters", "edge/shared");
  for (const namespace of ["a", "b"]) own(namespace);
  assert.deepEqual(actions(), kept);
  assert.deepEqual(written(), [], "statuses keep what says whose hosts they are");
  parameters({ mergeGateways: { namespaces: "All" } });
  assert.deepEqual(written(), []);
  parameters({});
  assert.deepEqual(written(), all);
  graph.delete("TracegateParameters", "edge/shared");
  graph.delete("GatewayClass", "tracegate");
  assert.deepEqual(actions(), kept);
  gatewayClass(CLASS);
  graph.delete("Pod", "edge/tracegate-1");
  assert.deepEqual(written(), all, "no proxies are shared");
});

test("a Gateway with the name of the class moves too: its own proxies, in the namespace of the shared ones, are not in their way", () => {
  const { graph, gatewayClass, actions, objects, shared, serving } = merging();
  const listeners = [{ name: "http", port: 80, protocol: "HTTP", hostname: "edge.example.com" }];
  const metadata = { namespace: "edge", name: "tracegate" };
  graph.set({ apiVersion: "", kind: "Gateway", metadata, spec: { gatewayClassName: "tracegate", listeners } } as never);
  const own = objects("edge/tracegate");
  gatewayClass(CLASS);
  assert.ok(own.length > 0);
  assert.deepEqual(
    objects("GatewayClass/tracegate").filter((each) => own.includes(each)),
    [],
  );
  shared(true);
  serving("edge/tracegate");
  assert.ok(actions().includes("remove edge/tracegate"));
});

test("the parameters of another controller's class merge nothing", () => {
  const { graph, gatewayClass } = merging();
  gatewayClass({ ...CLASS, controllerName: "example.com/other" });
  assert.equal(accountOf(graph, "GatewayClass/tracegate"), undefined);
});
