import assert from "node:assert/strict";
import { test } from "node:test";
import { GATEWAY_NAME } from "../base/manifest.ts";
import { Graph } from "../graph/graph.ts";
import { gatewayProgramming } from "./gateway-programmed.ts";

const GATEWAY_API = "gateway.networking.k8s.io/v1";

/** A Gateway that was programmed once, and its pod. */
function programmed() {
  const graph = new Graph();
  graph.set({
    apiVersion: GATEWAY_API,
    kind: "GatewayClass",
    metadata: { name: "tracegate" },
    spec: { controllerName: "tracegate.dev/gateway-controller" },
  } as never);
  graph.set({
    apiVersion: GATEWAY_API,
    kind: "Gateway",
    metadata: { namespace: "apps", name: "web" },
    spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 8080, protocol: "HTTP" }] },
    status: { conditions: [{ type: "Programmed", status: "True", reason: "Programmed", message: "" }] },
  } as never);
  graph.set({
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: "apps", name: "web" },
    spec: { clusterIP: "10.0.0.1", type: "ClusterIP" },
  } as never);
  const pod = (ready: boolean) =>
    graph.set({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "apps", name: "web-1", labels: { [GATEWAY_NAME]: "web" } },
      status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
    } as never);
  const condition = () => graph.query(gatewayProgramming, "apps/web").condition;
  return { graph, pod, condition };
}

test("a Gateway without pods is not programmed, even if it was before", () => {
  const { graph, pod, condition } = programmed();
  pod(true);
  assert.equal(condition().status, "True", condition().message);
  // The Deployment's own status shows this one.
  pod(false);
  assert.equal(condition().status, "True");
  graph.delete("Pod", "apps/web-1");
  assert.deepEqual(
    [condition().status, condition().reason, condition().message],
    ["False", "Pending", "The Gateway has no pods"],
  );
});
