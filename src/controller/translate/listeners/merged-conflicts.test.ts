/** Conflicts between Gateways that share proxies, against a comparison of each listener with each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../../test/helpers/property.ts";
import { covers } from "../../../base/hostnames.ts";
import { cluster } from "../fixtures/cluster.ts";
import { gatewayModel } from "./gateways.ts";
import { reservation } from "./merged-conflicts.ts";

const HOSTS = ["", "*.com", "*.a.com", "a.com", "b.a.com", "c.b.a.com", "*.b.a.com", "a.org", "com"];

const listener = fc.record({
  hostname: fc.constantFrom(...HOSTS),
  port: fc.constantFrom(80, 81),
  protocol: fc.constantFrom("HTTP", "HTTP", "HTTP", "TCP"),
  /** What the status says: held by the spec of now, or by a former one, lost; undefined: nothing. */
  before: fc.constantFrom("held", "formerly", "lost", undefined),
});
type Listener = typeof listener extends fc.Arbitrary<infer T> ? T : never;

const ORDER = ["held", "formerly", undefined, "lost"];

function conditionOf(before: Listener["before"]): readonly object[] {
  if (before === undefined) return [];
  if (before === "lost") return [{ type: "Conflicted", status: "True", observedGeneration: 2 }];
  const { type } = reservation("shared");
  return [{ type, status: "True", observedGeneration: before === "formerly" ? 1 : 2 }];
}

test("a listener is accepted if none that comes first at another Gateway overlaps with it", () => {
  // One listener for each Gateway, so that there are no conflicts inside.
  fc.assert(
    fc.property(fc.array(listener, { minLength: 2, maxLength: 8 }), (listeners) => {
      const parametersRef = { group: "tracegate.dev", kind: "TracegateParameters", name: "shared", namespace: "apps" };
      const controllerName = "tracegate.dev/gateway-controller";
      const of = (kind: string, name: string, rest: object): never =>
        ({
          apiVersion: "",
          kind,
          metadata: { name, namespace: kind === "GatewayClass" ? "" : "apps" },
          ...rest,
        }) as never;
      const graph = cluster(
        of("GatewayClass", "shared", { spec: { controllerName, parametersRef } }),
        of("TracegateParameters", "shared", { spec: { mergeGateways: {} } }),
        ...listeners.map(({ before, ...spec }, i) =>
          of("Gateway", `g${i}`, {
            metadata: {
              name: `g${i}`,
              namespace: "apps",
              generation: 2,
              creationTimestamp: `2026-01-01T00:00:0${i}Z`,
            },
            spec: { gatewayClassName: "shared", listeners: [{ name: "l", ...spec }] },
            status: { listeners: [{ name: "l", conditions: conditionOf(before) }] },
          }),
        ),
      );
      const winners: Listener[] = [];
      const expected = new Map<Listener, boolean>();
      const sorted = listeners.toSorted((a, b) => ORDER.indexOf(a.before) - ORDER.indexOf(b.before));
      for (const each of sorted) {
        const isFree = winners.every((other) => !rivals(each, other));
        expected.set(each, isFree);
        if (isFree) winners.push(each);
      }
      for (const [i, each] of listeners.entries())
        assert.equal(graph.query(gatewayModel, `apps/g${i}`)?.listeners[0]?.accepted, expected.get(each), `g${i}`);
    }),
  );
});

function rivals(a: Listener, b: Listener): boolean {
  if (a.port !== b.port) return false;
  if (a.protocol !== b.protocol || a.protocol === "TCP") return true;
  return covers(a.hostname, b.hostname) || covers(b.hostname, a.hostname);
}
