import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../src/recorder/records.ts";
import { curlOf } from "./curl.ts";

function record(fields: Partial<RequestRecord>): RequestRecord {
  const request = { host: "shop.example", path: "/cart", status: 200, reason: "Upstream" } as const;
  const rest = { time: "2026-01-01T00:00:00.000Z", worker: 0, number: 1, generation: 1, duration: 1 };
  return { ...rest, received: 0, sent: 0, ...request, ...fields };
}

test("a command sends the request to the port that it came to", () => {
  assert.equal(curlOf(record({ method: "GET", bind: "bind/8080" })), "curl -i http://shop.example:8080/cart");
  const encrypted = record({ method: "GET", bind: "bind/8443", tls: true });
  assert.equal(curlOf(encrypted), "curl -i https://shop.example:8443/cart");
  const posted = record({ method: "POST", host: "shop.example:81", bind: "bind/8080" });
  assert.equal(curlOf(posted), "curl -i -X POST http://shop.example:81/cart");
});

test("what a client wrote stays one word of the shell", () => {
  const evil = record({ method: "GET", path: "/'; rm -rf ~ #$(id)" });
  assert.equal(curlOf(evil), `curl -i 'http://shop.example/'\\''; rm -rf ~ #$(id)'`);
});

test("connections cannot be sent again", () => {
  assert.equal(curlOf(record({ kind: "session" })), undefined);
});
