import assert from "node:assert/strict";
import { test } from "node:test";
import type { HealthNotice } from "../upstream/endpoints/endpoint.ts";
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
