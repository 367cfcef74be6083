import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoadBalancer, Workload } from "./discovery.ts";
import { localityTiers, ownLocality, whyBehind, withLocalityOfNode } from "./locality.ts";

const OWN = ownLocality({ LOCALITY: "eu/eu-1/a", NODE_NAME: "n1", NETWORK: "net1", CLUSTER_ID: "c1" });

function workload(name: string, more: Partial<Workload> = {}): Workload {
  const base = { name, namespace: "a", workloadIps: [], status: "healthy", capacity: 1, services: {} } as const;
  return { ...base, uid: `c1//Pod/a/${name}`, ...more };
}

const WORKLOADS = [
  workload("far", { locality: { region: "us", zone: "us-1" } }),
  workload("region", { locality: { region: "eu", zone: "eu-2" } }),
  workload("zone", { locality: { region: "eu", zone: "eu-1" } }),
  workload("ill", { locality: { region: "eu", zone: "eu-1" }, status: "unhealthy" }),
  workload("nowhere"),
];

function names(loadBalancer: Partial<LoadBalancer> | undefined, workloads = WORKLOADS, own = OWN): string[][] {
  const full = { routingPreferences: ["region", "zone"], mode: "Failover", healthPolicy: "OnlyHealthy" } as const;
  const service = loadBalancer === undefined ? {} : { loadBalancer: { ...full, ...loadBalancer } };
  return localityTiers(service, workloads, own)
    .flat()
    .map((bucket) => bucket.map(({ name }) => name));
}

test("Failover: nearest first, then those that share less with this gateway", () => {
  assert.deepEqual(names({}), [["zone"], ["region"], ["far", "nowhere"]]);
});

test("a preference counts only if those before it match", () => {
  const odd = workload("odd", { locality: { region: "us", zone: "eu-1" } });
  assert.deepEqual(names({}, [odd]), [["odd"]]);
  assert.deepEqual(names({ mode: "Strict", routingPreferences: ["region", "zone"] }, [odd]), [[]]);
});

test("Strict: only those that match in all", () => {
  assert.deepEqual(names({ mode: "Strict" }), [["zone"]]);
  assert.deepEqual(names({ mode: "Strict", routingPreferences: [] }), [["far", "region", "zone", "nowhere"]]);
});

test("Standard, Passthrough and nothing: one bucket", () => {
  for (const balancer of [undefined, { mode: "Standard" }, { mode: "Passthrough" }] as const)
    assert.deepEqual(names(balancer), [["far", "region", "zone", "nowhere"]]);
});

test("a cluster that a workload names takes precedence over the one in its uid", () => {
  const routingPreferences = ["cluster"] as const;
  const moved = workload("moved", { clusterId: "c2" });
  const joined = workload("joined", { uid: "c2//Pod/a/joined", clusterId: "c1" });
  assert.deepEqual(names({ routingPreferences }, [moved, joined]), [["joined"], ["moved"]]);
});

test("the environment takes precedence over the configuration, unless it is empty", () => {
  const configured = { cluster: "c9", network: "net9" };
  assert.deepEqual(ownLocality({ CLUSTER_ID: "c1", NETWORK: "" }, configured), { cluster: "c1", network: "net9" });
  const place = { region: "eu", zone: "eu-1" };
  assert.deepEqual(ownLocality({ LOCALITY: "" }, place), place);
  assert.deepEqual(ownLocality({ LOCALITY: "/eu-2" }, place), { zone: "eu-2" }, "as a whole");
});

test("AllowAll also takes workloads that are not healthy", () => {
  assert.deepEqual(names({ healthPolicy: "AllowAll" })[0], ["zone", "ill"]);
});

test("node, network and cluster count too", () => {
  const workloads = [
    workload("other", { uid: "c2//Pod/a/other" }),
    workload("near", { network: "net1", node: "n1" }),
    workload("network", { network: "net1", node: "n2" }),
  ];
  const routingPreferences = ["cluster", "network", "node"] as const;
  assert.deepEqual(names({ routingPreferences }, workloads), [["near"], ["network"], ["other"]]);
});

test("an unknown locality of this gateway matches nothing", () => {
  assert.deepEqual(names({}, WORKLOADS, ownLocality({})), [["far", "region", "zone", "nowhere"]]);
  assert.deepEqual(names({ mode: "Strict" }, WORKLOADS, ownLocality({})), [[]]);
});

test("region and zone of the node come from a workload on it, unless they are set", () => {
  const place = { region: "eu", zone: "eu-1" };
  const all = [
    workload("none", { node: "n1" }),
    workload("other", { node: "n2", locality: { zone: "eu-2" } }),
    workload("same", { node: "n1", locality: place }),
  ];
  assert.deepEqual(withLocalityOfNode({ node: "n1" }, all), { ...place, node: "n1" });
  assert.deepEqual(withLocalityOfNode({ node: "n1", cluster: "c1" }, all), { ...place, node: "n1", cluster: "c1" });
  for (const own of [{}, { node: "n3" }, { node: "n1", zone: "eu-3" }, { node: "n1", cluster: "c2" }])
    assert.deepEqual(withLocalityOfNode(own, all), own);
});

test("why a workload is behind others", () => {
  const routingPreferences = ["region", "zone"] as const;
  const loadBalancer = { routingPreferences, mode: "Failover", healthPolicy: "OnlyHealthy" } as const;
  const why = (more: Partial<Workload>, balancing: Partial<LoadBalancer> = {}): string =>
    whyBehind({ loadBalancer: { ...loadBalancer, ...balancing } }, workload("a", more), OWN);
  assert.equal(why({ locality: { region: "us", zone: "eu-1" } }), "its region is us, that of the gateway eu");
  assert.equal(why({ locality: { region: "eu" } }), "its zone is unknown, that of the gateway eu-1");
  assert.equal(why({ locality: { region: "eu", zone: "eu-1" } }), "");
  assert.equal(why({ locality: { region: "us" } }, { mode: "Standard" }), "");
  assert.equal(why({ locality: { region: "us" }, backup: true }), "a backup");
  assert.match(why({ locality: { region: "us" }, backup: true }, { mode: "Strict" }), /its region/);
  assert.equal(why({ locality: { region: "eu", zone: "eu-1" }, backup: true }, { mode: "Strict" }), "a backup");
  assert.equal(why({ status: "unhealthy" }), "its status is unhealthy");
  assert.equal(why({ status: "unhealthy", backup: true }, { healthPolicy: "AllowAll" }), "a backup");
  assert.equal(whyBehind({}, workload("a", { locality: { region: "us" } }), OWN), "");
});

test("backups follow all others, and are near or far among themselves", () => {
  const spare = workload("spare", { backup: true });
  const near = workload("near", { locality: { region: "eu", zone: "eu-1" }, backup: true });
  assert.deepEqual(names({}, [spare, ...WORKLOADS.slice(0, 1), near]), [["far"], ["near"], ["spare"]]);
  assert.deepEqual(names(undefined, [spare, ...WORKLOADS.slice(0, 1)]), [["far"], ["spare"]]);
});
