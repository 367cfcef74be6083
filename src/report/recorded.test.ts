import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../recorder/records.ts";
import { agoText, decidedBy, keyOf, podOfKey, urlToSend } from "./recorded.ts";

const RECORD: RequestRecord = {
  time: "2026-11-28T12:00:00.000Z",
  worker: 3,
  number: 4711,
  generation: 1,
  method: "GET",
  path: "/",
  status: 200,
  reason: "Upstream",
  duration: 1,
  received: 0,
  sent: 0,
};

test("a response of the backend is its own doing if it failed, also a call of gRPC with status 200", () => {
  const decided = (more: Partial<RequestRecord>): string => decidedBy({ ...RECORD, ...more });
  assert.equal(decided({}), "");
  assert.equal(decided({ status: 404 }), "");
  assert.equal(decided({ status: 500 }), "the backend");
  assert.equal(decided({ grpcStatus: 0 }), "");
  assert.equal(decided({ grpcStatus: 14 }), "the backend: gRPC status 14");
  assert.equal(decided({ slow: true }), "slow for its route");
});

test("a URL has the port of its bind, unless the host has one or the system has chosen it", () => {
  const url = (more: Partial<RequestRecord>) => urlToSend({ ...RECORD, host: "shop.example", path: "/a", ...more });
  assert.equal(url({ bind: "bind/8080" }), "http://shop.example:8080/a");
  assert.equal(url({ bind: "bind/8443", tls: true }), "https://shop.example:8443/a");
  assert.equal(url({ bind: "bind/8080", host: "shop.example:81" }), "http://shop.example:81/a");
  assert.equal(url({ bind: "bind/0" }), "http://shop.example/a");
  assert.equal(url({ kind: "session" }), undefined);
});

test("the key of a record names its pod; ids that clients chose stay whole", () => {
  assert.equal(keyOf(RECORD), "3-4711");
  const key = keyOf({ ...RECORD, pod: "web-1" });
  assert.deepEqual(podOfKey(key), { pod: "web-1", id: "3-4711" });
  assert.deepEqual(podOfKey("3-4711"), { pod: undefined, id: "3-4711" });
  for (const id of ["Web:3-4711", "a:b", "urn:x:3-4711"]) assert.deepEqual(podOfKey(id), { pod: undefined, id });
});

test("a time as how long ago it was, never in the future though clocks differ", () => {
  const now = Date.parse("2026-11-28T12:00:00.000Z");
  const ago = (seconds: number): string => agoText(new Date(now - seconds * 1000).toISOString(), now);
  assert.deepEqual([-5, 0, 59, 60, 3599, 3600, 86_399, 200_000].map(ago), [
    "0s",
    "0s",
    "59s",
    "1m",
    "59m",
    "1h",
    "23h",
    "2d",
  ]);
});
