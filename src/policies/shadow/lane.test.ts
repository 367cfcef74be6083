/** How many requests may wait for shadow policies, and for which. What shadow policies decide: test/e2e/policies/shadow.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf } from "../testing/context.ts";
import { ShadowLane } from "./lane.ts";

const HOST = {
  newBudget: () => undefined,
  told: () => undefined,
  logDefect() {},
};

/** One request whose shadow policy at a place waits for `service`. */
function request(identity: string, service: Promise<undefined>): ShadowLane {
  const lane = new ShadowLane(contextOf(), HOST);
  lane.run("extAuthz", { phase: "route", identity }, () => service);
  return lane;
}

/** How the policies of requests have decided. */
function verdicts(lanes: readonly ShadowLane[]): Record<string, number> {
  const all = Map.groupBy(lanes, ({ decisions }) => decisions[0]?.verdict ?? "waits");
  return Object.fromEntries([...all].map(([verdict, { length }]) => [verdict, length]));
}

test("a route whose service is slow leaves room for others, however many requests it gets", async () => {
  const slow = Promise.withResolvers<undefined>();
  const many = (identity: string, count: number): ShadowLane[] =>
    Array.from({ length: count }, () => request(identity, slow.promise));
  const one = many("route a extAuthz", 3000);
  assert.deepEqual(verdicts(one), { waits: 1024, undecided: 1976 });
  const two = many("route b extAuthz", 3000);
  assert.deepEqual(verdicts(two), { waits: 512, undecided: 2488 });
  const other = request("route c extAuthz", Promise.resolve(undefined));
  await other.pending;
  assert.deepEqual(verdicts([other]), { allow: 1 });
  slow.resolve(undefined);
  await Promise.all([...one, ...two].map(({ pending }) => pending));
  assert.deepEqual(verdicts([...one, ...two]), { allow: 1536, undecided: 4464 });
  const after = many("route a extAuthz", 1025);
  await Promise.all(after.map(({ pending }) => pending));
  assert.deepEqual(verdicts(after), { allow: 1024, undecided: 1 }, "all have been given back");
});

test("a policy that waits counts at its own place, not at that of an earlier one of the request", async () => {
  const slow = Promise.withResolvers<undefined>();
  const lanes: ShadowLane[] = [];
  for (let i = 0; i < 1100; i++) {
    const lane = request("gateway", Promise.resolve(undefined));
    lane.run("extAuthz", { phase: "route", identity: "route a extAuthz" }, () => slow.promise);
    lanes.push(lane);
    while (lane.decisions.length === 0) await Promise.resolve();
  }
  const other = request("gateway", Promise.resolve(undefined));
  await other.pending;
  assert.deepEqual(verdicts([other]), { allow: 1 });
  slow.resolve(undefined);
  await Promise.all(lanes.map(({ pending }) => pending));
});

test("a decision that fails gives its place back", async () => {
  for (let i = 0; i < 2048; i++) {
    const lane = request("route a extAuthz", Promise.reject(new Error("defect")));
    await lane.pending?.catch(() => {});
    assert.equal(lane.decisions[0]?.verdict, "deny");
  }
});
