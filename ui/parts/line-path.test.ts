import assert from "node:assert/strict";
import { test } from "node:test";
import { linePath } from "./line-path.ts";

const frame = { width: 100, height: 10, from: 0, to: 100_000, top: 20, gap: 10_000 };

function sample(seconds: number, value: number | undefined): { time: string; value: number | undefined } {
  return { time: new Date(seconds * 1000).toISOString(), value };
}

test("samples are joined, and what is unknown is a gap", () => {
  assert.equal(linePath([sample(0, 0), sample(10, 10), sample(20, 20)], frame), "M0.0 10.0h0L10.0 5.0L20.0 0.0");
  assert.equal(linePath([sample(0, 0), sample(30, 20)], frame), "M0.0 10.0h0M30.0 0.0h0", "a point is missing");
  assert.equal(linePath([sample(0, 0), sample(10, undefined), sample(20, 0)], frame), "M0.0 10.0h0M20.0 10.0h0");
});
