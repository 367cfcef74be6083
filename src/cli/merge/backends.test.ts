import assert from "node:assert/strict";
import { test } from "node:test";
import type { BackendView, EndpointView, ProbeAnswer } from "../../admin/plane/backends.ts";
import { mergeBackend, mergeBackends, mergeProbes } from "./backends.ts";

function endpoint(
  state: EndpointView["state"],
  requests: number,
  health: number,
  address = "10.0.0.7:80",
): EndpointView {
  const rest = { latency: 0, active: 1, consecutiveFailures: 0, weight: 1, changes: [] };
  const limits = { connections: 8, waiting: 8, requests: null, rejected: 1 };
  return { addresses: [address], state, requests, health, limits, ...rest };
}

function backend(each: EndpointView, key = "/a"): BackendView {
  const endpoints = { total: 1, shown: [each] };
  return { key, name: "a", kind: "static", requests: 1, failing: 1, endpoints, routes: { total: 0, shown: [] } };
}

test("an endpoint has the worst state that a replica sees, and says which", () => {
  const { endpoints, requests } = mergeBackend([
    { pod: "a", answer: backend(endpoint("healthy", 30, 1)) },
    { pod: "b", answer: backend(endpoint("evicted", 10, 0)) },
  ]);
  assert.equal(requests, 2);
  assert.equal(endpoints.total, 1);
  const [{ state, stateAt, health, active, requests: own, limits } = endpoint("unused", 0, 0)] = endpoints.shown;
  assert.deepEqual(
    { state, stateAt, health, active, own },
    { state: "evicted", stateAt: ["b"], health: 0.75, active: 2, own: 40 },
  );
  assert.deepEqual(limits, { connections: 16, waiting: 16, requests: null, rejected: 2 });
});

test("endpoints that get no requests are counted though each replica has evicted another one, and come first", () => {
  const [one, two] = ["10.0.0.8:80", "10.0.0.9:80"];
  const at = (pod: string, down: string, ...up: readonly string[]) => {
    const shown = [endpoint("evicted", 1, 0, down), ...up.map((address) => endpoint("healthy", 1, 1, address))];
    return { pod, answer: { ...backend(endpoint("healthy", 0, 1)), endpoints: { total: 3, shown } } };
  };
  const { failing, endpoints } = mergeBackend([at("a", one, two, "10.0.0.7:80"), at("b", two, one)]);
  assert.equal(failing, 2);
  assert.equal(endpoints.total, 3);
  assert.deepEqual(
    endpoints.shown.map(({ addresses, state, stateAt }) => [addresses[0], state, stateAt]),
    [
      [one, "evicted", ["a"]],
      [two, "evicted", ["b"]],
      ["10.0.0.7:80", "healthy", undefined],
    ],
  );
  const many = { ...at("a", one).answer, failing: 40 };
  assert.equal(mergeBackend([at("b", two), { pod: "a", answer: many }]).failing, 40, "more than it shows");
});

test("an endpoint has the sums of its connections and checks, and the averages of replicas that used it", () => {
  const pool = { active: 1, idle: 2, connecting: 3, waiting: 4 };
  const check = { passed: 5, failed: 6, reason: "status 503" };
  const changes = (...times: readonly number[]) => times.map((at) => ({ at, state: "healthy" }) as const);
  const used = { ...endpoint("healthy", 10, 1), pool, check, changes: changes(30, 10), latency: 0.2, active: 0 };
  const unused = { ...endpoint("healthy", 90, 1), pool, check, changes: changes(20), consecutiveFailures: 3 };
  const [merged] = mergeBackend([
    { pod: "a", answer: backend(used) },
    { pod: "b", answer: backend(unused) },
  ]).endpoints.shown;
  assert.deepEqual(merged?.pool, { active: 2, idle: 4, connecting: 6, waiting: 8 });
  assert.deepEqual(merged?.check, { passed: 10, failed: 12, reason: "status 503" });
  assert.deepEqual(
    merged?.changes.map(({ at }) => at),
    [30, 20, 10],
  );
  assert.equal(merged?.latency, 0.2, "a replica without a response has none");
  assert.equal(merged?.consecutiveFailures, 3);
  const idle = mergeBackend([1, 0.5].map((health) => ({ pod: "a", answer: backend(endpoint("healthy", 0, health)) })));
  assert.equal(idle.endpoints.shown[0]?.health, 0.75, "without requests, replicas count alike");
});

test("a list has each backend once, and of those that are left out the number", () => {
  const list = (total: number, ...keys: readonly string[]) => ({
    pod: "a",
    answer: { generation: 7, backends: { total, shown: keys.map((key) => backend(endpoint("healthy", 1, 1), key)) } },
  });
  const { generation, backends } = mergeBackends([list(2, "/a", "/b"), list(9, "/b", "/c")]);
  assert.equal(generation, 7);
  assert.equal(backends.total, 9);
  assert.deepEqual(
    backends.shown.map(({ key, requests }) => [key, requests]),
    [
      ["/a", 1],
      ["/b", 2],
      ["/c", 1],
    ],
  );
  assert.equal(mergeBackends([list(1, "/a"), list(1, "/b")]).backends.total, 2);
});

test("the probes of an endpoint stand together, each with the pod that sent it", () => {
  const answer = (healthy: boolean): ProbeAnswer => ({
    key: "/a",
    endpoints: healthy ? 3 : 2,
    probes: ["10.0.0.7:80", "10.0.0.8:80"].map((address) => ({ address, sent: { type: "tcp" }, healthy, duration: 1 })),
  });
  const merged = mergeProbes([
    { pod: "a", answer: answer(true) },
    { pod: "b", answer: answer(false) },
  ]);
  assert.equal(merged.endpoints, 3);
  assert.deepEqual(
    merged.probes.map(({ address, pod, healthy }) => [address, pod, healthy]),
    [
      ["10.0.0.7:80", "a", true],
      ["10.0.0.7:80", "b", false],
      ["10.0.0.8:80", "a", true],
      ["10.0.0.8:80", "b", false],
    ],
  );
});
