import assert from "node:assert/strict";
import { test } from "node:test";
import { defineQuery } from "../../graph/graph.ts";
import { cluster } from "../fixtures/cluster.ts";
import { isGranted } from "./grants.ts";

const GATEWAY_API = "gateway.networking.k8s.io";
const FROM = { group: GATEWAY_API, kind: "HTTPRoute", namespace: "apps" };
const TO = { group: "", kind: "Service", namespace: "shared", name: "db" };

/** `shared` lets HTTPRoutes of `apps` and Gateways of `edge` refer to one Service and all ConfigMaps. */
const graph = cluster({
  apiVersion: "",
  kind: "ReferenceGrant",
  metadata: { namespace: "shared", name: "grant" },
  spec: {
    from: [FROM, { group: GATEWAY_API, kind: "Gateway", namespace: "edge" }],
    to: [
      { group: "", kind: "Service", name: "db" },
      { group: "", kind: "ConfigMap" },
    ],
  },
});

const cases: [what: string, from: Partial<typeof FROM>, to: Partial<typeof TO>, granted: boolean][] = [
  ["what the grant names", {}, {}, true],
  ["any name where the grant names none", {}, { kind: "ConfigMap", name: "ca" }, true],
  ["another entry of `from`", { kind: "Gateway", namespace: "edge" }, {}, true],
  ["the same namespace, without a grant", { namespace: "other" }, { kind: "Secret", namespace: "other" }, true],
  ["another kind of target", {}, { kind: "Secret" }, false],
  ["another group of the target", {}, { group: "tracegate.dev" }, false],
  ["another name", {}, { name: "other" }, false],
  ["another namespace of the target, which has no grant", {}, { namespace: "private" }, false],
  ["another namespace of the referrer", { namespace: "edge" }, {}, false],
  ["another kind of referrer", { kind: "GRPCRoute" }, {}, false],
  ["another group of the referrer", { group: "" }, {}, false],
];
for (const [what, from, to, granted] of cases)
  test(`${granted ? "granted" : "refused"}: ${what}`, () => {
    const query = defineQuery("isGranted", (read) => isGranted(read, { ...FROM, ...from }, { ...TO, ...to }));
    assert.equal(graph.query(query, ""), granted);
  });
