import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, contextOf, creatorOf } from "../testing/context.ts";
import { buffer } from "./index.ts";

const create = creatorOf(buffer);

const LONG = { failureMode: "failClosed", maxBytes: 3 } as const;

test("a request within the limit passes; a longer one gets 413 without a body, or passes with failOpen", async () => {
  const policy = create({ request: LONG });
  assert.equal(await policy.onRequest?.(contextOf({}, { body: "abc" })), undefined);
  const reply = await answerOf(policy, contextOf({}, { body: "abcd" }));
  assert.deepEqual([reply?.status, reply?.body], [413, ""]);
  const open = create({ request: { ...LONG, failureMode: "failOpen" } });
  assert.equal(await open.onRequest?.(contextOf({}, { body: "abcd" })), undefined);
});

test("a side that is not configured does nothing", () => {
  assert.equal(create({ request: LONG }).onResponse, undefined);
  assert.equal(create({ response: LONG }).onRequest, undefined);
});
