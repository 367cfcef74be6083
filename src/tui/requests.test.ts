import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsOf } from "./fixtures/follow.ts";
import { factsOf, MAX_REQUESTS, matchesFilter, NO_REQUESTS, type RequestList, withEvent } from "./requests.ts";

const event = (number: number, length = 100, message: object = { type: "requestStarted" }) => {
  return { number, pod: "", event: { request: number, eventEnd: 1, message }, length };
};
const numbers = (list: RequestList) => list.requests.map(({ number }) => number);

function listOf(count: number, still = false): RequestList {
  let list = NO_REQUESTS;
  for (let number = 1; number <= count; number++) list = withEvent(list, event(number), still);
  return list;
}

test("new requests take the place of the oldest ones; how many are gone is known", () => {
  const list = listOf(MAX_REQUESTS + 7);
  assert.equal(list.requests.length, MAX_REQUESTS);
  assert.deepEqual([list.requests[0]?.number, list.gone, list.last, list.missed], [8, 7, MAX_REQUESTS + 7, 0]);
  const later = withEvent(list, event(3), false);
  assert.equal(later, list, "a later event of a request that is gone does not bring it back");
});

test("a list that stands still keeps what it has; how many were not added is known", () => {
  const list = listOf(MAX_REQUESTS + 7, true);
  assert.deepEqual([list.requests[0]?.number, list.requests.length], [1, MAX_REQUESTS]);
  assert.deepEqual([list.gone, list.missed], [0, 7]);
  assert.equal(withEvent(list, event(MAX_REQUESTS + 2), true), list, "a later event of a request that was not added");
  assert.deepEqual(numbers(withEvent(list, event(MAX_REQUESTS + 8), false)).at(-1), MAX_REQUESTS + 8);
});

test("long events fill the list sooner, and a request does not keep events without end", () => {
  const MIB = 1024 * 1024;
  let list = NO_REQUESTS;
  for (let number = 1; number <= 40; number++) list = withEvent(list, event(number, MIB), false);
  assert.deepEqual([list.requests.length, list.gone], [32, 8]);

  let one = NO_REQUESTS;
  for (let i = 0; i < 2000; i++) one = withEvent(one, event(1), false);
  one = withEvent(one, event(1, 100, { type: "requestFinished" }), false);
  assert.deepEqual([one.requests[0]?.events.length, one.requests[0]?.omitted], [1001, 1000], "the last event is kept");
  let long = NO_REQUESTS;
  for (let i = 0; i < 10; i++) long = withEvent(long, event(1, MIB), false);
  assert.deepEqual([long.length, long.requests[0]?.omitted], [4 * MIB, 6]);
  // Requests that were small when they were added.
  let grown = listOf(100, true);
  for (let number = 1; number <= 100; number++) grown = withEvent(grown, event(number, MIB), true);
  assert.ok(grown.length <= 65 * MIB);
});

test("a stream that goes on makes room for its newest messages, and keeps what came before them", () => {
  const message = (i: number) => event(1, 50 + (i % 7), { type: "streamMessage", number: i });
  let list = withEvent(NO_REQUESTS, event(1), false);
  for (let i = 1; i <= 5000; i++) list = withEvent(list, message(i), false);
  const { events = [], lengths = [], length, omitted } = list.requests[0] ?? {};
  const messages = events.map((each) => each.message as { readonly type: string; readonly number?: number });
  assert.equal(messages[0]?.type, "requestStarted");
  const shown = messages.slice(1).map(({ number }) => number);
  assert.deepEqual(
    shown,
    Array.from(shown, (_, index) => 5000 - shown.length + 1 + index),
    "the last ones, without a gap",
  );
  assert.ok(shown.length >= 400 && shown.length < 1000);
  assert.equal(omitted, 5000 - shown.length);
  const sum = lengths.reduce((total, each) => total + each, 0);
  assert.deepEqual([length, list.length, lengths.length], [sum, sum, events.length]);
});

const requestOf = (...args: Parameters<typeof eventsOf>) => {
  return { number: 1, pod: "web-7d4b9", events: eventsOf(...args), lengths: [], length: 0, omitted: 0 };
};

test("a request is listed with its time, path, status, duration and what decided", () => {
  const { time, what, status, took, why, severity } = factsOf(
    requestOf(7, { path: "/cart?a=1", status: 403, denied: true }),
  );
  assert.deepEqual(
    [time, what, status, took, why, severity],
    ["04:05:07.678", "GET /cart?a=1", "403", 2000, "denied: deny rules[0] is true: blocked", "warn"],
  );
  assert.equal(factsOf(requestOf(1, { path: "/" })).why, "route api", "of one that succeeds, the route");
  const running = { ...requestOf(1, { path: "/x" }), events: eventsOf(1, { path: "/x" }).slice(0, 3) };
  assert.deepEqual([factsOf(running).what, factsOf(running).status], ["GET /x", "…"]);
  const lost = { eventEnd: null, severity: "warn", message: { type: "endLost" } };
  const { status: unknown, severity: warned } = factsOf({ ...running, events: [...running.events, lost] });
  assert.deepEqual([unknown, warned], ["?", "warn"], "not as one that continues");
});

test("a failed gRPC call has its code as status, a connection without requests is closed", () => {
  const finished = (more: object) => {
    const message = { type: "requestFinished", error: null, ...more };
    return factsOf({ ...requestOf(1, { path: "/" }), events: [{ eventEnd: 1, severity: "info", message }] }).status;
  };
  assert.equal(finished({ status: 200, grpc: { status: 14 } }), "grpc14");
  assert.equal(finished({ status: 200, grpc: { status: 0 } }), "200");
  assert.equal(finished({ status: null }), "closed");
});

test("text of clients cannot control the terminal", () => {
  const { what, searchable } = factsOf(requestOf(1, { path: "/a\u001b]0;owned\u0007" }));
  assert.equal(what, "GET /a␛]0;owned␇");
  assert.doesNotMatch(searchable, /\p{Cc}/u);
});

test("a filter passes requests that have all its words, whatever their case", () => {
  const request = requestOf(1, { path: "/Cart", status: 403, denied: true });
  for (const filter of ["cart", "403 CART", "shop.example", "web-7d4", "rules[0]", "api denied"])
    assert.ok(matchesFilter(request, filter), filter);
  for (const filter of ["404", "cart 200"]) assert.ok(!matchesFilter(request, filter), filter);
});
