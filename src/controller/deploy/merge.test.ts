import assert from "node:assert/strict";
import { test } from "node:test";
import { strategicMerge } from "./merge.ts";

test("objects are merged, scalars replaced, null removes", () => {
  assert.deepEqual(
    strategicMerge(
      { replicas: 1, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } }, paused: true },
      { replicas: 3, strategy: { rollingUpdate: { maxSurge: 2 } }, paused: null },
    ),
    { replicas: 3, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 2 } } },
  );
});

test("lists are merged by the key of their elements", () => {
  assert.deepEqual(
    strategicMerge(
      { containers: [{ name: "tracegate", image: "a", env: [{ name: "A", value: "1" }] }] },
      {
        containers: [
          {
            name: "tracegate",
            env: [
              { name: "A", value: "2" },
              { name: "B", value: "3" },
            ],
          },
          { name: "sidecar", image: "b" },
        ],
      },
    ),
    {
      containers: [
        {
          name: "tracegate",
          image: "a",
          env: [
            { name: "A", value: "2" },
            { name: "B", value: "3" },
          ],
        },
        { name: "sidecar", image: "b" },
      ],
    },
  );
});

test("one port may have TCP and UDP", () => {
  const tcp = { port: 53, protocol: "TCP", name: "listener-53" };
  const udp = { port: 53, protocol: "UDP", name: "udp-53" };
  assert.deepEqual(strategicMerge({ ports: [tcp, udp] }, { ports: [{ port: 53, protocol: "UDP", nodePort: 30053 }] }), {
    ports: [tcp, { ...udp, nodePort: 30053 }],
  });
});

test("lists without a key are replaced", () => {
  assert.deepEqual(
    strategicMerge({ tolerations: [{ key: "a" }], args: ["x"] }, { tolerations: [{ key: "b" }], args: ["y"] }),
    { tolerations: [{ key: "b" }], args: ["y"] },
  );
});

test("$patch deletes and replaces", () => {
  const base = {
    volumes: [{ name: "tmp" }, { name: "config" }],
    securityContext: { runAsUser: 1 },
    affinity: { a: 1 },
  };
  assert.deepEqual(
    strategicMerge(base, {
      volumes: [{ name: "tmp", $patch: "delete" }],
      securityContext: { $patch: "replace", runAsNonRoot: true },
      affinity: { $patch: "delete" },
    }),
    { volumes: [{ name: "config" }], securityContext: { runAsNonRoot: true } },
  );
  assert.deepEqual(strategicMerge(base, { volumes: [{ $patch: "replace" }, { name: "own" }] }).volumes, [
    { name: "own" },
  ]);
});

test("the base is not changed", () => {
  const base = { spec: { containers: [{ name: "a" }] } };
  strategicMerge(base, { spec: { containers: [{ name: "a", image: "b" }] } });
  assert.deepEqual(base, { spec: { containers: [{ name: "a" }] } });
});
