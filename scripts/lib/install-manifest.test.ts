import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { RESOURCES } from "../../src/kube/objects.ts";
import { readText } from "./files.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

const documents = parseAllDocuments(readText("install/tracegate.yaml")).map((each) => each.toJS());

/** The rules of the ClusterRole. */
function clusterRules(): readonly Rule[] {
  return documents.find(({ kind }) => kind === "ClusterRole").rules;
}

function allowed(group: string, resource: string, verb: string): boolean {
  return clusterRules().some(
    ({ apiGroups, resources, verbs }) =>
      apiGroups.includes(group) && resources.includes(resource) && verbs.includes(verb),
  );
}

test("chart and package have one version", () => {
  const { version } = JSON.parse(readText("package.json"));
  const chart = parse(readText("install/helm/tracegate/Chart.yaml"));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  assert.ok(readText("install/tracegate.yaml").includes(`tracegate/tracegate:${version}`));
});

test("the controller may read every kind that it knows", () => {
  for (const { group, plural } of Object.values(RESOURCES))
    for (const verb of ["get", "list", "watch"])
      assert.ok(allowed(group, plural, verb), `${verb} ${plural} of group "${group}"`);
});

test("the permissions have no wildcards, and change nothing that users write", () => {
  for (const { apiGroups, resources, verbs } of clusterRules())
    for (const each of [...apiGroups, ...resources, ...verbs]) assert.ok(!each.includes("*"));
  for (const verb of ["update", "patch", "delete"])
    for (const [group, resource] of [
      ["gateway.networking.k8s.io", "gateways"],
      ["gateway.networking.k8s.io", "httproutes"],
      ["tracegate.dev", "tracegatepolicies"],
      ["", "pods"],
    ] as const)
      assert.ok(!allowed(group, resource, verb), `${verb} ${resource}`);
  assert.ok(!allowed("", "secrets", "update") && !allowed("", "secrets", "patch"));
});
