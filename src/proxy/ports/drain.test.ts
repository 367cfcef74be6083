import assert from "node:assert/strict";
import { test } from "node:test";
import { DRAIN_STEPS, type DrainablePort, takeDrainStep } from "./drain.ts";

/** A port that records the calls; `accepted` grows with each of its first `arrivals` reads. */
function portOf(calls: string[], arrivals = 0): DrainablePort & { readonly looks: number } {
  let looks = 0;
  return {
    get accepted() {
      return Math.min(looks++, arrivals);
    },
    get looks() {
      return looks;
    },
    announceDrain: () => calls.push("announce"),
    holdConnections: () => calls.push("hold"),
    stopListening: () => calls.push("stop"),
    serveHeld: () => calls.push("serve"),
    closeIdle: () => calls.push("close idle"),
  };
}

test("each step calls every port, in the order that loses no request", async () => {
  const calls: string[] = [];
  const ports = [portOf(calls), portOf(calls)];
  for (const step of DRAIN_STEPS) await takeDrainStep(step, ports, 0);
  const steps = ["announce", "hold", "stop", "serve", "close idle"];
  assert.deepEqual(
    calls,
    steps.flatMap((step) => [step, step]),
    "held connections are served before idle ones close, on all ports",
  );
});

for (const step of ["announce", "hold", "close"] as const)
  test(`${step}: waits while connections arrive on any port, up to its share of the deadline`, async (t) => {
    let now = 0;
    t.mock.method(performance, "now", () => now);
    const [calm, busy] = [portOf([]), portOf([], 3)];
    await takeDrainStep(step, [calm, busy], 80);
    // Two reads per round; the third round sees no new connection.
    assert.equal(busy.looks, 6);
    const endless = portOf([], Number.POSITIVE_INFINITY);
    let looks = 0;
    const port: DrainablePort = {
      ...portOf([]),
      get accepted() {
        if (++looks === 4) now += 1000;
        return endless.accepted;
      },
    };
    await takeDrainStep(step, [port], 80);
    assert.equal(looks, 4, "the step ends although connections keep coming");
  });

test("close: listening sockets close only once no connection waits in the system's queue", async () => {
  const calls: string[] = [];
  const port = portOf(calls, 1);
  let looksAtStop = 0;
  const watched: DrainablePort = {
    ...port,
    get accepted() {
      return port.accepted;
    },
    stopListening: () => {
      looksAtStop = port.looks;
    },
  };
  await takeDrainStep("close", [watched], 1000);
  assert.ok(looksAtStop >= 2, "a close resets what is queued");
});
