import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { OWNED_KINDS } from "../../src/controller/base/manifest.ts";
import { watchedKinds } from "../../src/controller/base/watched.ts";
import type { Kind } from "../../src/kube/objects.ts";
import { RESOURCES } from "../../src/kube/resources.ts";
import { controllerRules } from "../../test/helpers/kube/permissions.ts";
import { CUSTOM_KINDS } from "./crds.ts";
import { readText } from "./files.ts";

/** The head is an empty document. */
function objectsOf(manifest: string) {
  return parseAllDocuments(manifest)
    .map((each) => each.toJS())
    .filter((each) => each !== null);
}

test("chart and package have one version", () => {
  const { version } = JSON.parse(readText("package.json"));
  const chart = parse(readText("install/helm/tracegate/Chart.yaml"));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  assert.ok(readText("install/tracegate.yaml").includes(`tracegate/tracegate:${version}`));
  const { image } = parse(readText("install/helm/tracegate/values.yaml"));
  const [shown] = parse(chart.annotations["artifacthub.io/images"]);
  assert.equal(shown.image, `${image.registry}/${image.repository}:${version}`);
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

test("the command in the manifest's head replaces every image", () => {
  const text = readText("install/tracegate.yaml");
  const command = /^# {3}(sed '[^']+') install\/tracegate\.yaml \|/m.exec(text)?.[1];
  assert.ok(command !== undefined);
  const { stdout } = spawnSync("sh", ["-c", command], { input: text, encoding: "utf8" });
  const images = (manifest: string) =>
    objectsOf(manifest)
      .filter(({ kind }) => kind === "Deployment")
      .flatMap(({ spec }) => spec.template.spec.containers)
      .flatMap(({ image, env }) => [
        image,
        env.find((each: { name: string }) => each.name === "TRACEGATE_PROXY_IMAGE").value,
      ]);
  assert.deepEqual(images(stdout), ["registry.example.com/tracegate:1.0", "registry.example.com/tracegate:1.0"]);
});

test("the roles view, edit and admin get permissions for every kind of tracegate, and for nothing else", () => {
  const roles = objectsOf(readText("install/tracegate.yaml")).filter(
    ({ kind, metadata }) => kind === "ClusterRole" && /-(view|edit)$/.test(metadata.name),
  );
  const granted = (role: string) =>
    roles
      .filter(({ metadata }) => metadata.labels[`rbac.authorization.k8s.io/aggregate-to-${role}`] === "true")
      .flatMap(({ rules }) => rules);
  const kinds = CUSTOM_KINDS.map((kind) => RESOURCES[kind].plural).sort();
  const READ = ["get", "list", "watch"];
  const WRITE = ["create", "delete", "deletecollection", "patch", "update"];
  for (const [role, verbs] of [
    ["view", READ],
    ["edit", [...READ, ...WRITE]],
    ["admin", [...READ, ...WRITE]],
  ] as const) {
    const rules = granted(role);
    for (const rule of rules) assert.deepEqual([rule.apiGroups, rule.resources], [["tracegate.dev"], kinds]);
    assert.deepEqual(rules.flatMap((rule) => rule.verbs).sort(), [...verbs].sort(), role);
  }
});

test("the ClusterRole permits what the controller does, and nothing else", () => {
  const wanted: string[] = [];
  const want = (kind: Kind, verbs: readonly string[], subresource = ""): void => {
    const { group, plural } = RESOURCES[kind];
    wanted.push(...verbs.map((verb) => `${verb} ${group}/${plural}${subresource}`));
  };
  for (const kind of watchedKinds({ ingress: false })) want(kind, ["list", "watch"]);
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
