import assert from "node:assert/strict";
import { test } from "node:test";
import { desiredStatuses } from "../../status/statuses.ts";
import { cluster } from "../fixtures/cluster.ts";

function route(name: string, path: string, created: string) {
  return {
    apiVersion: "",
    kind: "HTTPRoute",
    metadata: { namespace: "apps", name, creationTimestamp: created },
    spec: {
      parentRefs: [{ name: "web" }],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: path } }], backendRefs: [{ name: "shop", port: 80 }] }],
    },
  } as const;
}

test("the status of a route changes only if what is found about it does", () => {
  const graph = cluster(
    {
      apiVersion: "",
      kind: "Gateway",
      metadata: { namespace: "apps", name: "web" },
      spec: { gatewayClassName: "tracegate", listeners: [{ name: "http", port: 80, protocol: "HTTP" }] },
    },
    route("old", "/shop", "2026-01-01T00:00:00Z"),
    route("young", "/shop", "2026-02-01T00:00:00Z"),
    route("lost", "/cart", "2026-02-01T00:00:00Z"),
  );
  const statuses = () => {
    const all = graph.query(desiredStatuses, "").filter(({ kind }) => kind === "HTTPRoute");
    return Object.fromEntries(all.map((each) => [each.key, each]));
  };
  const findings = (key: string): readonly string[] => {
    const body = statuses()[key]?.status;
    const conditions = body !== undefined && "parents" in body ? body.parents.flatMap((each) => each.conditions) : [];
    return conditions.filter(({ type }) => type === "tracegate.dev/Findings").map(({ reason }) => reason);
  };
  const before = statuses();
  assert.deepEqual(["apps/old", "apps/young", "apps/lost"].map(findings), [[], ["ShadowedRoute"], []]);
  // Another route becomes shadowed, and yet another one too; neither concerns the others.
  graph.set(route("older", "/cart", "2025-01-01T00:00:00Z"));
  graph.set(route("younger", "/shop", "2026-03-01T00:00:00Z"));
  assert.deepEqual(findings("apps/lost"), ["ShadowedRoute"]);
  assert.equal(statuses()["apps/young"], before["apps/young"]);
  assert.equal(statuses()["apps/old"], before["apps/old"]);
  // What took precedence goes.
  graph.delete("HTTPRoute", "apps/old");
  assert.deepEqual(findings("apps/young"), []);
  assert.deepEqual(findings("apps/younger"), ["ShadowedRoute"]);
});
