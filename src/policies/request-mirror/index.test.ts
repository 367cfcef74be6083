import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { mirrorHooks, requestMirror } from "./index.ts";
import type { Mirror } from "./schema.ts";

const mirror = (percentage: number): Mirror => ({ target: { type: "static", host: "127.0.0.1", port: 9 }, percentage });

function copies(config: readonly Mirror[], random: number): unknown {
  const trace = new RecordedTrace();
  assert.equal(mirrorHooks(config, DEPS, () => random).onRequest?.(contextOf({}, { trace })), undefined);
  return trace.events;
}

test("each target gets its share, and no request waits", () => {
  const event = (count: number) => [{ kind: "request_mirror", details: { copies: count } }];
  assert.deepEqual(copies([mirror(0.5)], 0.4), event(1));
  assert.deepEqual(copies([mirror(0.5)], 0.5), event(0));
  assert.deepEqual(copies([mirror(1), mirror(0.2), mirror(1)], 0.99), event(2));
  assert.deepEqual(copies([mirror(0)], 0), event(0));
});

test("a retried request is copied once; a tunnel never", () => {
  const trace = new RecordedTrace();
  const policy = creatorOf(requestMirror)([mirror(1)]);
  const context = contextOf({}, { trace });
  policy.onRequest?.(context);
  policy.onRequest?.(context);
  policy.onRequest?.(contextOf({ method: "CONNECT" }, { trace }));
  assert.equal(trace.events.length, 1);
});
