import assert from "node:assert/strict";
import { test } from "node:test";
import { AdminUnavailable } from "../admin/plane/plane.ts";
import type { ProbeResult } from "../telemetry/probe-result.ts";
import { Probes } from "./probes.ts";

const RESULT: ProbeResult = { address: "10.0.0.7:80", sent: { type: "tcp" }, healthy: true, duration: 1 };

test("some endpoints are probed at a time, and none while others are or shortly after", async () => {
  const asked: (readonly string[])[] = [];
  let release: (results: readonly ProbeResult[]) => void = () => undefined;
  const probes = new Probes({
    probe(keys) {
      asked.push(keys);
      return new Promise((resolve) => {
        release = resolve;
      });
    },
  });
  const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`);
  const first = probes.of(keys);
  await assert.rejects(probes.of(["other"]), AdminUnavailable);
  release([RESULT]);
  assert.deepEqual(await first, [RESULT]);
  await assert.rejects(probes.of(["other"]), AdminUnavailable);
  assert.deepEqual(asked, [keys.slice(0, 16)]);
  assert.deepEqual(await probes.of([]), [], "nothing to probe is no reason to wait");
});

test("a worker that ends meanwhile is a failure that passes", async () => {
  const probes = new Probes({ probe: () => Promise.reject(new Error("no worker serves now")) });
  await assert.rejects(
    probes.of(["key"]),
    (error) => error instanceof AdminUnavailable && /no worker/.test(error.message),
  );
});
