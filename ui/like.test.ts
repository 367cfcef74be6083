import assert from "node:assert/strict";
import { test } from "node:test";
import { CelEnvironment } from "../src/cel/index.ts";
import type { RequestRecord } from "../src/recorder/records.ts";
import { alikeText, traceHash, whereLike } from "./like.ts";
import { placeOf } from "./place.ts";

function record(fields: Partial<RequestRecord>): RequestRecord {
  const request = { method: "GET", host: "shop.example", path: "/cart", status: 200, reason: "Upstream" } as const;
  const rest = { time: "2026-01-01T00:00:00.000Z", worker: 0, number: 1, generation: 1, duration: 1 };
  return { ...rest, received: 0, sent: 0, ...request, ...fields };
}

/** The expression in the address of a trace. */
function expressionOf(like: RequestRecord): string | undefined {
  const hash = traceHash(like);
  return hash === undefined ? undefined : (placeOf(hash).query.get("expression") ?? undefined);
}

function chooses(expression: string | undefined, method: string, authority: string, path: string): boolean {
  assert.ok(expression !== undefined);
  const request = { method, authority, path, search: "", scheme: "http", version: "HTTP/1.1", headers: [] };
  const times = { startTime: new Date(0), endTime: new Date(0) };
  return CelEnvironment.defining("")
    .compileCondition(expression)
    .matches({ request: { ...request, ...times } }, (error) => assert.fail(String(error)));
}

test("requests with the same method, host and path are like a recorded one", () => {
  const like = expressionOf(record({}));
  assert.ok(chooses(like, "GET", "Shop.example:8080", "/cart"));
  for (const [method, host, path] of [
    ["POST", "shop.example", "/cart"],
    ["GET", "other.example", "/cart"],
    ["GET", "shop.example", "/cart/1"],
  ] as const)
    assert.ok(!chooses(like, method, host, path), `${method} ${host} ${path}`);
});

test("what a client wrote is a text in the expression", () => {
  const path = '/a"b\\c" || true || "';
  const like = expressionOf(record({ path, method: "A'B" }));
  assert.ok(chooses(like, "A'B", "shop.example", path));
  assert.ok(!chooses(like, "A'B", "shop.example", "/other"));
});

test("of a path that is not recorded as a whole, the beginning must be the same", () => {
  for (const fields of [{ path: "/reset/<redacted>/x" }, { path: "/reset/", cut: true }] as const)
    assert.ok(chooses(expressionOf(record(fields)), "GET", "shop.example", "/reset/abc"));
});

test("the next request must get the same route; on request, any path will do", () => {
  const { query } = placeOf(traceHash(record({ route: "shop/cart" })) ?? "");
  assert.equal(query.get("route"), "shop/cart");
  assert.equal(traceHash(record({ route: "shop/cart" }), true), "#/trace?route=shop%2Fcart");
  assert.equal(placeOf(traceHash(record({})) ?? "").query.has("route"), false);
});

test("no trace waits for connections, or for any request", () => {
  assert.equal(traceHash(record({ kind: "session" })), undefined);
  assert.equal(traceHash(record({ kind: "session", route: "shop/tcp" }), true), undefined);
  assert.equal(traceHash(record({}), true), undefined);
});

test("what ended alike is counted with what was not kept", () => {
  const failed = {
    status: 403,
    reason: "Authorization",
    error: "TG_AUTHORIZATION",
    route: "shop/admin",
  } as const;
  const denied = record({ ...failed, kept: true, leftOut: 170, decider: { policy: "authorization" } });
  assert.equal(
    whereLike(denied),
    'route == "shop/admin" && response.code == 403 && reason == "Authorization" && error == "TG_AUTHORIZATION" && policy == "authorization"',
  );
  const records = [denied, record({ ...failed, kept: true, decider: { policy: "authorization" } })];
  const answer = { records, found: 2, requests: 9000, until: "2026-01-01T00:00:00.000Z" };
  assert.equal(alikeText(answer, "15 minutes"), "about 172 like this in the last 15 minutes (2 kept)");
  assert.equal(alikeText({ ...answer, found: 5000 }, "hour"), "about 5000 like this in the last hour");
});
