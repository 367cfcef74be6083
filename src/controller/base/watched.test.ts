import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../kube/objects.ts";
import { WATCHED } from "./watched.ts";

test("of a pod, only what queries read is kept; of proxies also why they do not start", () => {
  const pod = (labels: Record<string, string>, spec: object = {}): Pod =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", namespace: "shop", labels, annotations: { large: "x" } },
      spec: { nodeName: "node1", containers: [{ name: "c" }], ...spec },
      status: {
        conditions: [
          { type: "PodScheduled", status: "False", message: "no node" },
          { type: "Ready", status: "False", lastTransitionTime: "2026-01-01T00:00:00Z" },
          { type: "ContainersReady", status: "True" },
        ],
        containerStatuses: [
          { name: "c", image: "i", restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } }, ready: false },
        ],
      },
    }) as unknown as Pod;
  const proxy = { "gateway.networking.k8s.io/gateway-name": "web" };
  const trimmed = (labels: Record<string, string>, spec?: object) => WATCHED.Pod?.trim?.(pod(labels, spec));
  const notReady = { type: "Ready", status: "False" };
  assert.deepEqual(trimmed({ app: "backend" }), {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a", namespace: "shop", labels: { app: "backend" } },
    spec: { nodeName: "node1" },
    status: { conditions: [notReady, { type: "ContainersReady", status: "True" }] },
  });
  // Then gates may be what it waits for.
  assert.deepEqual(trimmed({}, { readinessGates: [{ conditionType: "x" }] })?.status, { conditions: [notReady] });
  assert.deepEqual(trimmed(proxy)?.status, {
    conditions: [
      notReady,
      { type: "ContainersReady", status: "True" },
      { type: "PodScheduled", status: "False", message: "no node" },
    ],
    containerStatuses: [{ image: "i", restartCount: 1, state: { waiting: { reason: "CrashLoopBackOff" } } }],
  });
});
