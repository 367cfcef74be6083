import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf } from "../src/report/rows.ts";
import { TraceBodies } from "./trace-bodies.ts";
import { remember, type TakenTrace, traceOf } from "./traces.ts";

function taken(requestId: string | undefined, startTime: string): TakenTrace {
  const started = { message: { type: "requestStarted", requestId } };
  const snapshot = { message: { type: "requestSnapshot", requestState: { request: { startTime } } } };
  const trace = { rows: rowsOf([started, snapshot]), bodies: new TraceBodies() };
  remember(trace);
  return trace;
}

test("a record has the trace of its own request, not of another one with its id", () => {
  const trace = taken("a", "2026-01-31T12:00:00.250Z");
  assert.equal(traceOf({ id: "a", time: "2026-01-31T12:00:00.240Z" }), trace);
  assert.equal(traceOf({ id: "a", time: "2026-01-31T12:00:01.240Z" }), undefined);
  assert.equal(traceOf({ id: "b", time: "2026-01-31T12:00:00.240Z" }), undefined);
  taken(undefined, "2026-01-31T12:00:00.250Z");
  assert.equal(traceOf({ time: "2026-01-31T12:00:00.250Z" }), undefined, "without an id");
});

test("only the latest traces are remembered", () => {
  const time = "2026-01-31T12:00:00.000Z";
  const traces = ["1", "2", "3", "4", "5", "1", "6"].map((id) => taken(id, time));
  assert.equal(traceOf({ id: "2", time }), undefined);
  assert.deepEqual(
    ["3", "4", "5", "1", "6"].map((id) => traceOf({ id, time })),
    traces.slice(2),
  );
});
