import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { OWNED_KINDS } from "../../src/controller/deploy/manifest.ts";
import { WATCHED } from "../../src/controller/watched.ts";
import type { Kind } from "../../src/kube/objects.ts";
import { RESOURCES } from "../../src/kube/resources.ts";
import { controllerRules } from "../../test/helpers/kube/permissions.ts";
import { readText } from "./files.ts";

test("chart and package have one version", () => {
  const { version } = JSON.parse(readText("package.json"));
  const chart = parse(readText("install/helm/tracegate/Chart.yaml"));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  assert.ok(readText("install/tracegate.yaml").includes(`tracegate/tracegate:${version}`));
});

/** Kinds whose statuses the controller writes. */
const WITH_STATUS = [
  "BackendTLSPolicy",
  "GRPCRoute",
  "Gateway",
  "GatewayClass",
  "HTTPRoute",
  "ListenerSet",
  "TCPRoute",
  "TLSRoute",
  "TracegateBackend",
  "TracegatePolicy",
  "UDPRoute",
  "XBackendTrafficPolicy",
] as const satisfies readonly Kind[];

test("the ClusterRole permits what the controller does, and nothing else", () => {
  const wanted: string[] = [];
  const want = (kind: Kind, verbs: readonly string[], subresource = ""): void => {
    const { group, plural } = RESOURCES[kind];
    wanted.push(...verbs.map((verb) => `${verb} ${group}/${plural}${subresource}`));
  };
  for (const kind of Object.keys(WATCHED) as Kind[]) want(kind, ["list", "watch"]);
  for (const kind of OWNED_KINDS)
    want(kind, ["list", "watch", "get", "create", "delete", ...(kind === "Secret" ? [] : ["patch"])]);
  for (const kind of WITH_STATUS) {
    want(kind, ["get"]);
    want(kind, ["patch"], "/status");
  }
  want("GatewayClass", ["create"]);
  wanted.push("create authentication.k8s.io/tokenreviews", "create /events", "get /events", "patch /events");
  const granted = controllerRules("ClusterRole").flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`))),
  );
  assert.deepEqual(granted.toSorted(), [...new Set(wanted)].sort());
});

test("in its own namespace the controller may change its Lease and its CA, by name", () => {
  const rules = controllerRules("Role").map(({ resources, resourceNames = [], verbs }) =>
    [...resources, ...resourceNames, ...verbs].join(" "),
  );
  assert.deepEqual(rules, ["leases create", "leases tracegate get update", "secrets tracegate-xds-cert update"]);
});
