import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../../src/recorder/records.ts";
import { toneOf } from "./words.ts";

const RECORD: RequestRecord = {
  time: "2026-01-31T12:00:00.000Z",
  worker: 0,
  number: 1,
  generation: 1,
  path: "/",
  status: 200,
  reason: "Upstream",
  duration: 1,
  received: 0,
  sent: 0,
};

test("failures of a server stand out, rejections less, in gRPC too", () => {
  for (const [outcome, tone] of [
    [{}, "good"],
    [{ status: 0 }, "quiet"],
    [{ status: 404 }, "warn"],
    [{ status: 503 }, "bad"],
    [{ error: "TG_CLIENT_GONE", status: 0 }, "warn"],
    [{ grpcStatus: 0 }, "good"],
    [{ grpcStatus: 7 }, "warn"],
    [{ grpcStatus: 14 }, "bad"],
  ] as const)
    assert.equal(toneOf({ ...RECORD, ...outcome }), tone, JSON.stringify(outcome));
});
