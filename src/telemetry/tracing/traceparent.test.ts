import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTraceparent, newSpanId, newTraceId, parseTraceparent } from "./traceparent.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test("the header of the specification's example, and unknown flags", () => {
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${SPAN}-01`), { traceId: TRACE, spanId: SPAN, sampled: true });
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.sampled, false);
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-fe`)?.sampled, false);
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-ff`)?.sampled, true);
});

test("a later version is read as far as it is known, also with another field", () => {
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-01`)?.traceId, TRACE);
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`)?.spanId, SPAN);
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-01-`)?.spanId, SPAN);
});

test("anything else is not a trace", () => {
  const wrong = [
    "",
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-01-more`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}-${SPAN.slice(1)}x-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
    `00_${TRACE}_${SPAN}_01`,
  ];
  for (const text of wrong) assert.equal(parseTraceparent(text), undefined, text);
});

test("new ids are valid, and new each time", () => {
  const ids = Array.from({ length: 2000 }, () => ({ traceId: newTraceId(), spanId: newSpanId() }));
  for (const { traceId, spanId } of ids)
    assert.deepEqual(parseTraceparent(formatTraceparent(traceId, spanId)), { traceId, spanId, sampled: true });
  assert.equal(new Set(ids.flatMap(({ traceId, spanId }) => [traceId, spanId])).size, 4000);
});
