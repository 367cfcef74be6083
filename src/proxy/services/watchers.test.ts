import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest } from "../../http/message/message.ts";
import { FollowCounters } from "../../trace/follow-counters.ts";
import { TraceGate } from "../../trace/gate.ts";
import { RequestSecrets } from "../../trace/secrets.ts";
import type { TraceSink } from "../../trace/tracer.ts";
import { Watchers } from "./watchers.ts";

const OPTIONS = { reveal: false, maxBodyBytes: 0 };
const secretsOf = (): RequestSecrets => new RequestSecrets(false, new Set(["authorization"]), new Set());
const ANY = { functions: "" };

function request(path: string): HttpRequest {
  const head = { method: "GET", scheme: "http", authority: "a.test", path, search: "", version: "HTTP/1.1" } as const;
  return { ...head, headers: ["x-a", "1", "authorization", "Bearer secret-1"] };
}

function setUp() {
  const gate = new TraceGate();
  const sent: string[] = [];
  const watchers = new Watchers(gate, (id, event) => sent.push(`${id} ${event === undefined ? "end" : "event"}`));
  const claim = (path: string, traceToken = ""): boolean => {
    const tracer = watchers.claim(request(path), { traceToken }, performance.now(), secretsOf);
    tracer?.finish();
    return tracer !== undefined;
  };
  return { gate, watchers, sent, claim };
}

test("no request is traced without a watcher that matches it", () => {
  const { gate, watchers, claim } = setUp();
  watchers.add(1, 0, ANY, OPTIONS);
  assert.equal(claim("/"), false, "known, but not armed yet");
  watchers.remove(1);
  watchers.add(2, 0, { expression: 'request.path == "/a" && request.headers["x-a"] == "1"', functions: "" }, OPTIONS);
  gate.arm(0);
  assert.equal(claim("/b"), false);
  assert.equal(gate.armed, true);
  assert.equal(claim("/a"), true);
  assert.equal(claim("/a"), false, "one request for each watcher");
});

test("a filter does not tell secrets that the trace would not show", () => {
  for (const reveal of [false, true]) {
    const { gate, watchers, claim } = setUp();
    const expression = 'request.headers["authorization"].startsWith("Bearer s")';
    watchers.add(1, 0, { expression, functions: "" }, { ...OPTIONS, reveal });
    gate.arm(0);
    assert.equal(claim("/a"), reveal);
  }
});

test("several watchers take one request each, the oldest first", () => {
  const { gate, watchers, sent, claim } = setUp();
  for (const id of [1, 2]) {
    watchers.add(id, id - 1, ANY, OPTIONS);
    gate.arm(id - 1);
  }
  assert.deepEqual([claim("/"), claim("/"), claim("/")], [true, true, false]);
  assert.deepEqual(sent, ["1 end", "2 end"]);
});

test("an expression that fails for a request does not match it", () => {
  const { gate, watchers, claim } = setUp();
  watchers.add(1, 0, { expression: 'request.headers["missing"] == "x"', functions: "" }, OPTIONS);
  gate.arm(0);
  assert.equal(claim("/"), false);
  assert.equal(gate.armed, true);
});

test("a watcher that is added twice to a new thread is removed by one removal", () => {
  const { gate, watchers, sent, claim } = setUp();
  watchers.add(1, 0, ANY, OPTIONS);
  watchers.add(1, 0, ANY, OPTIONS);
  watchers.remove(1);
  watchers.add(2, 0, ANY, OPTIONS);
  gate.arm(0);
  assert.equal(claim("/"), true);
  assert.deepEqual(sent, ["2 end"]);
});

test("a request with a token goes to the watcher of that token, however old the others are", () => {
  const { gate, watchers, sent, claim } = setUp();
  const [alice, bob] = ["a".repeat(22), "b".repeat(22)];
  for (const [index, token] of [undefined, alice, bob].entries()) {
    watchers.add(index, index, { token, functions: "" }, OPTIONS);
    gate.arm(index);
  }
  assert.equal(claim("/", bob), true);
  assert.equal(claim("/", alice), true);
  assert.equal(claim("/", "c".repeat(22)), true, "no watcher has this token, so the request is like any other");
  assert.deepEqual(sent, ["2 end", "1 end", "0 end"]);
});

test("a watcher with a token takes no request without it", () => {
  const { gate, watchers, claim } = setUp();
  watchers.add(1, 0, { token: "a".repeat(22), functions: "" }, OPTIONS);
  gate.arm(0);
  for (const token of ["", "a", "a".repeat(23), "b".repeat(22)]) assert.equal(claim("/", token), false);
  assert.equal(gate.armed, true);
});

/** Watchers for routes, and requests whose routes are chosen after they have begun. */
function setUpRoutes(...routes: readonly string[]) {
  const { gate, watchers, sent } = setUp();
  const watch = (id: number, slot: number, route: string): void => {
    watchers.add(id, slot, { route, functions: "" }, OPTIONS);
    gate.arm(slot);
  };
  for (const [index, route] of routes.entries()) watch(index, index, route);
  const begin = (): TraceSink | undefined => {
    const sink = watchers.claim(request("/"), { traceToken: "" }, performance.now(), secretsOf);
    sink?.emit("info", { type: "requestStarted" });
    return sink;
  };
  /** The routes that are chosen one after another, then the end. */
  const end = (sink: TraceSink | undefined, ...labels: readonly string[]): void => {
    for (const label of [...labels, undefined]) sink?.routed?.(label);
    sink?.emit("info", { type: "requestFinished", status: 200, error: null });
    sink?.finish();
  };
  return { gate, watchers, sent, watch, begin, end };
}

test("watchers of routes take the requests of their routes, with what happened before the route was chosen", () => {
  const { gate, sent, begin, end } = setUpRoutes("shop/cart", "api");
  end(begin(), "shop/other", "shop/cartoon");
  end(undefined);
  assert.deepEqual(sent, []);
  const [failed, first, second] = [begin(), begin(), begin()];
  failed?.finish();
  end(second, "shop/all", "shop/cart");
  end(first, "shop/cart");
  end(begin(), "shop/api");
  assert.deepEqual(sent, ["0 event", "0 event", "0 end", "1 event", "1 event", "1 end"]);
  assert.equal(gate.armed, false);
  assert.equal(begin(), undefined, "each has its request");
});

test("watchers of one route take different requests", () => {
  const { sent, begin, end } = setUpRoutes("cart", "shop/cart");
  end(begin(), "shop/cart");
  assert.deepEqual(sent, ["0 event", "0 event", "0 end"]);
  end(begin(), "shop/cart");
  assert.deepEqual(sent.slice(3), ["1 event", "1 event", "1 end"]);
});

test("only the request that is traced says why other routes were not chosen", () => {
  const { begin } = setUpRoutes("cart");
  const sink = begin();
  assert.equal(sink?.options.candidates, false);
  sink?.routed?.("shop/cart");
  assert.notEqual(sink?.options.candidates, false);
  sink?.finish();
});

test("a request does not take the watcher that has come into the slot of the one that it was held for", () => {
  const { gate, watchers, sent, watch, begin, end } = setUpRoutes("cart");
  const sink = begin();
  watchers.remove(0);
  gate.free(0);
  watch(7, 0, "cart");
  end(sink, "shop/cart");
  assert.deepEqual(sent, []);
  end(begin(), "shop/cart");
  assert.deepEqual(sent, ["7 event", "7 event", "7 end"]);
});

test("of requests whose routes are not known yet, only some are held", () => {
  const { sent, begin, end } = setUpRoutes("cart");
  const sinks = Array.from({ length: 40 }, begin);
  assert.equal(sinks.filter((sink) => sink !== undefined).length, 32);
  for (const sink of sinks) end(sink, "shop/other");
  assert.ok(Array.from({ length: 32 }, begin).every((sink) => sink !== undefined));
  assert.deepEqual(sent, []);
});

test("a follower takes every request while its slot is armed, and none after", () => {
  const { gate, watchers, claim } = setUp();
  watchers.follow({ id: 1, slot: 0 }, ANY, OPTIONS, new FollowCounters().begin(0, 1), () => {});
  assert.equal(claim("/"), false, "known, but not armed yet");
  gate.arm(0);
  assert.deepEqual([claim("/"), claim("/")], [true, true]);
  gate.arm(1);
  gate.free(0);
  assert.equal(claim("/"), false, "another slot is armed");
  watchers.remove(1);
});
