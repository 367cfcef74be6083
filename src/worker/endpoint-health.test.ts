import assert from "node:assert/strict";
import { test } from "node:test";
import type { HealthNotice } from "../upstream/endpoints/endpoint.ts";
import type { NamesNotice } from "../upstream/endpoints/named-endpoints.ts";
import { EndpointHealth } from "./endpoint-health.ts";

test("a new worker ends with the newest result of each check, also if it arrives while the worker learns the others", async () => {
  const workers = new Map<number, Parameters<EndpointHealth["tell"]>[0]>();
  const health = new EndpointHealth(workers);
  const states = new Map<string, boolean | undefined>();
  const learn = (_name: string, args: unknown): void => {
    const { notice } = args as { readonly notice: HealthNotice };
    states.set(notice.key, notice.healthy);
  };
  const idle = (): Promise<never> => new Promise(() => {});
  const old = { index: 0, call: idle, callWithDeadline: idle };
  const fresh = {
    index: 1,
    call: (name: string, args: unknown) => {
      learn(name, args);
      return idle();
    },
    callWithDeadline: async (name: string, args: unknown) => {
      learn(name, args);
      // Another worker's check ends before this one replies.
      if (states.size === 1) health.checked(old, { key: "b", healthy: false, reason: "refused" });
    },
  };
  for (const [index, worker] of [old, fresh].entries()) workers.set(index, worker);
  for (const key of ["a", "b"]) health.checked(fresh, { key, healthy: true, reason: "" });
  await health.tell(fresh);
  assert.deepEqual(
    [...states],
    [
      ["a", true],
      ["b", false],
    ],
  );
});

test("the addresses of a name go to all other workers, and to those that start later until the name is followed no more", async () => {
  const workers = new Map<number, Parameters<EndpointHealth["tell"]>[0]>();
  const health = new EndpointHealth(workers);
  const learned: string[] = [];
  const worker = (index: number): Parameters<EndpointHealth["tell"]>[0] => {
    const learn = async (name: string, args: unknown): Promise<never> => {
      const { notice } = args as { readonly notice: NamesNotice };
      learned.push(`${index} ${name} ${notice.key} ${notice.addresses.flatMap(({ at }) => at).join()}`);
      return undefined as never;
    };
    return { index, call: learn, callWithDeadline: learn };
  };
  const [finder, other, late] = [worker(0), worker(1), worker(2)];
  workers.set(0, finder).set(1, other);
  health.found(finder, { key: "a", addresses: [{ at: ["10.0.0.1"], rank: 0, share: 1 }] });
  assert.deepEqual(learned.splice(0), ["1 names a 10.0.0.1"]);
  await health.tell(late);
  assert.deepEqual(learned.splice(0), ["2 names a 10.0.0.1"]);
  assert.equal(health.notices.names.length, 1);
  health.found(other, { key: "a", addresses: [] });
  assert.deepEqual(learned.splice(0), ["0 names a "]);
  await health.tell(late);
  assert.deepEqual([learned, health.notices.names], [[], []]);
});
