/**
 * The cost of one change for a controller with 3,000 HTTPRoutes on 10 Gateways: the time until the states of all Gateways are up
 * to date, and then all statuses.
 * Run: node bench/micro/graph.ts
 *
 * Node 24.21, two busy cores, median of 100 changes in ms, states and statuses: path of a route 3.1 and 5.6; another route 3.8 and
 * 5.4; an endpoint 2.5 and 0.6; an object that nothing depends on 2 and 0.7. The first computation of everything takes 600 and 120 ms.
 */
import { Graph } from "../../src/controller/graph/graph.ts";
import type { InputKind, Inputs } from "../../src/controller/graph/inputs.ts";
import { desiredStatuses } from "../../src/controller/status/statuses.ts";
import { gatewayState } from "../../src/controller/translate/gateway-state.ts";
import type { EndpointSlice, HttpRoute, ObjectMeta } from "../../src/kube/objects.ts";

const ROUTES = 3000;
const GATEWAYS = 10;
const SERVICES = 100;
const ROUNDS = 100;

let version = 0;

function metadata(name: string, namespace = "apps"): ObjectMeta {
  const creationTimestamp = "2026-01-01T00:00:00Z";
  return { name, namespace, uid: name, resourceVersion: String(++version), generation: 1, creationTimestamp };
}

function route(i: number, path = `/route${i}`): HttpRoute {
  const backendRefs = [{ name: `service${i % SERVICES}`, port: 80 }];
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: metadata(`route${i}`),
    spec: {
      parentRefs: [{ name: `gateway${i % GATEWAYS}` }],
      hostnames: [`host${i}.example.com`],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: path } }], backendRefs }],
    },
  };
}

function endpoints(i: number, address: string): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...metadata(`service${i}-slice`), labels: { "kubernetes.io/service-name": `service${i}` } },
    addressType: "IPv4",
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  };
}

function cluster(): Inputs[InputKind][] {
  const gateways = Array.from({ length: GATEWAYS }, (_, i): Inputs["Gateway"] => ({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: metadata(`gateway${i}`),
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
  }));
  const services = Array.from({ length: SERVICES }, (_, i): Inputs["Service"] => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(`service${i}`),
    spec: { clusterIP: `10.0.0.${i}`, ports: [{ port: 80, targetPort: 8080 }] },
  }));
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: metadata("apps", "") },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: metadata("tracegate", ""),
      spec: { controllerName: "tracegate.dev/gateway-controller" },
    },
    ...gateways,
    ...services,
    ...services.map((_, i) => endpoints(i, `10.1.0.${i}`)),
    ...Array.from({ length: ROUTES }, (_, i) => route(i)),
  ];
}

const graph = new Graph();
for (const object of cluster()) graph.set(object);

function states(): void {
  for (let i = 0; i < GATEWAYS; i++) graph.query(gatewayState, `apps/gateway${i}`);
}

function timed(work: () => unknown): number {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
}

function median(times: readonly number[]): string {
  return (times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0).toFixed(2);
}

function measure(name: string, change: (round: number) => void): void {
  const times = Array.from({ length: ROUNDS }, (_, round) => {
    change(round);
    return [timed(states), timed(() => graph.query(desiredStatuses, ""))] as const;
  });
  const [first, second] = [times.map(([ms]) => ms), times.map(([, ms]) => ms)];
  console.log(`${name.padEnd(20)} states ${median(first)} ms, statuses ${median(second)} ms`);
}

console.log(
  `first time: states ${timed(states).toFixed(0)} ms, statuses ${timed(() => graph.query(desiredStatuses, "")).toFixed(0)} ms`,
);
measure("path of a route", (round) => graph.set(route(7, `/changed${round}`)));
measure("another route", (round) => graph.set(route(ROUTES + round)));
measure("an endpoint", (round) => graph.set(endpoints(1, `10.1.1.${round}`)));
measure("an unrelated object", (round) =>
  graph.set({ apiVersion: "v1", kind: "ConfigMap", metadata: metadata("other"), data: { round: String(round) } }),
);
