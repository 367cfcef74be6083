/** Whatever an API server admits: no query fails, proxies accept what they are sent, and objects of others get no status. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/data-plane.ts";
import { oddObjects } from "../../../test/helpers/kube/odd-objects.ts";
import { packState } from "../../../test/helpers/kube/pack-state.ts";
import { fc } from "../../../test/helpers/property.ts";
import { keyOfObject } from "../../kube/keys.ts";
import { ALONE } from "../../proxy/ports/sharing.ts";
import type { Graph } from "../graph/graph.ts";
import { desiredStatuses } from "../status/statuses.ts";
import { cluster } from "./fixtures/cluster.ts";
import { gatewayState } from "./gateway-state.ts";

function isOurs(graph: Graph, key: string): boolean {
  return graph.get("Gateway", key)?.spec.gatewayClassName === "tracegate";
}

test("queries of odd objects do not fail, and only our objects get a status", () => {
  fc.assert(
    fc.property(oddObjects, (objects) => {
      const graph = cluster(...objects);
      for (const gateway of graph.list("Gateway")) {
        const key = keyOfObject(gateway);
        assert.equal(graph.query(gatewayState, key) !== undefined, isOurs(graph, key));
      }
      for (const { kind, key, status } of graph.query(desiredStatuses, "")) {
        if (kind === "Gateway") assert.ok(isOurs(graph, key), `Gateway ${key} is not ours`);
        const messages = JSON.stringify(status);
        assert.doesNotMatch(messages, /undefined|\[object Object\]|NaN/);
        if (!("parents" in status)) continue;
        for (const { parentRef } of status.parents) {
          const { namespace = key.split("/")[0], name, kind: parentKind = "Gateway" } = parentRef;
          const parent = `${namespace}/${name}`;
          const set = graph.get("ListenerSet", parent)?.spec.parentRef;
          const gateway = parentKind === "Gateway" ? parent : `${set?.namespace ?? namespace}/${set?.name}`;
          assert.ok(isOurs(graph, gateway), `parent ${parentKind} ${parent} of ${kind} ${key} is not ours`);
        }
      }
    }),
    { numRuns: 80 },
  );
});

test("proxies accept what they are sent for odd objects", async () => {
  await using plane = new TestPlane({ oidcCookieKey: new Uint8Array(32) });
  await fc.assert(
    fc.asyncProperty(oddObjects, async (objects) => {
      const graph = cluster(...objects);
      for (const gateway of graph.list("Gateway")) {
        const state = graph.query(gatewayState, keyOfObject(gateway));
        if (state === undefined) continue;
        const packed = packState(state);
        const anyPort = Object.fromEntries(packed.frame.binds.map(({ key }) => [key, 0]));
        await plane.plane.prepare(1, packed, anyPort, ALONE);
        plane.plane.abort();
      }
    }),
    { numRuns: 60 },
  );
});
