import assert from "node:assert/strict";
import { test } from "node:test";
import { liveItems, type TraceRecord } from "./source.ts";

test("a trace says at once that it connects, and then that it waits", async () => {
  const opened = Promise.withResolvers<AsyncGenerator<TraceRecord>>();
  const items = liveItems("web-1.shop", () => opened.promise, undefined);
  assert.deepEqual((await items.next()).value, { kind: "progress", text: "connecting to web-1.shop" });
  const second = items.next();
  opened.resolve((async function* () {})());
  assert.deepEqual((await second).value, { kind: "progress", text: "waiting for a request at web-1.shop" });
});
