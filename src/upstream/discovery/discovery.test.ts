import assert from "node:assert/strict";
import { test } from "node:test";
import { type Workload, Workloads } from "./discovery.ts";

const workload = (uid: string, ...workloadIps: string[]): Workload => ({
  uid,
  name: uid,
  namespace: "n",
  workloadIps,
  status: "healthy",
  capacity: 1,
  services: {},
});

test("workloads are found by any of their addresses, however those of IPv6 are written", () => {
  const workloads = new Workloads();
  assert.equal(workloads.find("10.0.0.1"), undefined);
  for (const each of [workload("a", "10.0.0.1", "2001:DB8:0::0:1"), workload("b"), workload("c", "10.0.0.2")])
    workloads.add(each);
  assert.equal(workloads.find("10.0.0.1")?.uid, "a");
  assert.equal(workloads.find("2001:db8::1")?.uid, "a");
  assert.equal(workloads.find("10.0.0.2")?.uid, "c");
  assert.equal(workloads.find("10.0.0.3"), undefined);
  workloads.become(new Workloads());
  assert.equal(workloads.find("10.0.0.1"), undefined);
});
