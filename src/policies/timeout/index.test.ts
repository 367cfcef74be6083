import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../base/durations.ts";
import { contextOf, creatorOf, RecordedTrace } from "../testing/context.ts";
import { timeout } from "./index.ts";

const create = creatorOf(timeout);

test("sets both deadlines; an absent one means no deadline", () => {
  const context = contextOf();
  create({ requestTimeout: ms(1500), backendRequestTimeout: ms(500) }).onRequest?.(context);
  assert.equal(context.requestTimeout, 1500);
  assert.equal(context.backendRequestTimeout, 500);
  create({ backendRequestTimeout: ms(700) }).onRequest?.(context);
  assert.equal(context.requestTimeout, 0);
  assert.equal(context.backendRequestTimeout, 700);
});

test("shows durations as they are written", () => {
  const trace = new RecordedTrace();
  const config = { requestTimeout: ms(30_000), backendRequestTimeout: ms(1500) };
  create(config).onRequest?.(contextOf({}, { trace }));
  const details = { requestTimeout: "30s", backendRequestTimeout: "1.5s" };
  assert.deepEqual(timeout.traceView(config, new Set()), details);
  assert.deepEqual(trace.events, [{ kind: "timeout", details }]);
});

test("a duration beyond the range of timers is rejected at load", () => {
  for (const requestTimeout of [-1, 2 ** 31, Number.NaN])
    assert.throws(
      () => create({ requestTimeout: ms(requestTimeout) }),
      /timeout.requestTimeout: use a duration from 0 to 24 days/,
    );
});
