import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fields } from "../base/fields.ts";
import { EVENTS } from "./fixtures/trace.ts";
import { outcomeLine, outcomeOf } from "./outcome.ts";
import { rowsOf } from "./rows.ts";
import { treeLines } from "./step-lines.ts";

const request = { method: "GET", uri: "http://a/x" };
const snapshot = {
  eventEnd: 1,
  message: { type: "requestSnapshot", stage: "initial request", requestState: { request } },
};
const route = (...candidates: (readonly [key: string, matched: boolean, reason: string, because?: string])[]) => ({
  eventEnd: 2,
  message: {
    type: "routeSelection",
    selectedRoute: candidates.find(([, , reason]) => reason === "selected")?.[0] ?? null,
    evaluatedRoutes: candidates.map(([key]) => key),
    candidates: candidates.map(([key, matched, reason, because]) => ({ route: key, matched, reason, because })),
  },
});
const event = (severity: string, message: Fields, more: Fields = {}) => ({ eventEnd: 3, severity, message, ...more });
const done = (status: number | null, error: string | null = null) =>
  event(error === null && (status ?? 0) < 400 ? "info" : "error", { type: "requestFinished", status, error });
const WON = route(["l/default/api", true, "selected"]);
const outcome = (...events: Fields[]) => outcomeLine(outcomeOf(rowsOf([snapshot, ...events])));

test("the outcome has the request, status, duration, route and what decided", () => {
  assert.equal(
    outcomeLine(outcomeOf(rowsOf(EVENTS))),
    "POST http://shop.example.com/api/cart?debug=1 → 503 in 2.51 ms · route cart · backend 127.0.0.1:9000 returned 503",
  );
});

test("of an event that has only the selected route, nothing is said about others", () => {
  const followed = { ...WON, message: { ...WON.message, evaluatedRoutes: [] } };
  assert.equal(outcome(followed, done(200)), "GET http://a/x → 200 in 3 µs · route api");
  assert.equal(rowsOf([followed])[0]?.summary, 'selected "api"');
  assert.deepEqual(
    treeLines([followed]).map(({ text }) => text),
    ["route api  selected"],
  );
});

test("a route won alone, or over the next one that matches", () => {
  assert.equal(outcome(WON, done(200)), "GET http://a/x → 200 in 3 µs · route api · the only route that matches");
  const over = route(
    ["l/api", true, "selected"],
    ["l/x", false, "path: no"],
    ["l/all", true, "precedence: /x is longer than /"],
  );
  assert.match(outcome(over, done(200)), /route api · won over "all": precedence: \/x is longer than \/$/);
  const why = "precedence: l/api is more specific (longer path)";
  const longer = route(["l/api", true, "selected"], ["l/all", true, why, "longer path"]);
  assert.match(outcome(longer, done(200)), /route api · won over "all": longer path$/);
});

test("without a route the outcome has the reason of the nearest candidate", () => {
  const none = route(["l/api", false, "path: /x is not under prefix /api"]);
  assert.match(
    outcome(none, done(404, "route not found")),
    /→ 404 .* · no route matches; nearest api: path: \/x is not under/,
  );
  assert.match(outcome(route(), done(404, "route not found")), / · no route matches$/);
  const listeners = [{ listener: "l", reason: "host: c.other does not match b.test" }];
  const unknownHost = event("error", { ...route().message, listeners });
  assert.match(
    outcome(unknownHost, done(404, "listener not found")),
    / · no listener accepts this host; host: c\.other does not match b\.test$/,
  );
});

test("the outcome says what rejected, failed or redirected the request, or responded to it", () => {
  const denied = event("error", {
    type: "authorizationResult",
    result: "deny",
    rules: [{ name: "admins", mode: "require", matched: false }],
  });
  assert.match(
    outcome(WON, denied, done(403, "authorization failed")),
    /denied: require rules\[0\] is not true: admins$/,
  );
  const jwt = event("error", {
    type: "policy",
    kind: "jwt",
    result: { type: "skip", reason: "the token has expired" },
  });
  assert.match(outcome(WON, jwt, done(401, "no")), /rejected by jwt: the token has expired$/);
  const start = event("info", { type: "backendCallStart", target: "127.0.0.1:1" });
  const failed = event("error", { type: "backendCallResult", status: null, error: "connection refused" });
  assert.match(outcome(WON, start, failed, done(503, "upstream")), /backend 127\.0\.0\.1:1: connection refused$/);
  const policy = (kind: string) => event("info", { type: "policy", kind, result: { type: "apply", details: "" } });
  const location = event("info", {
    type: "responseSnapshot",
    requestState: { response: { headers: { location: "http://b/" } } },
  });
  assert.match(
    outcome(WON, policy("request_redirect"), location, done(301)),
    /redirected to http:\/\/b\/ by request_redirect$/,
  );
  assert.match(outcome(WON, policy("direct_response"), done(200)), /response by direct_response$/);
});

test("a status of the backend is attributed to it, even after a rule that failed without effect", () => {
  const allowed = event("error", {
    type: "authorizationResult",
    result: "allow",
    rules: [
      { name: "a", mode: "allow", matched: false, error: "no such key" },
      { name: "b", mode: "allow", matched: true },
    ],
  });
  const start = event("info", { type: "backendCallStart", target: "127.0.0.1:1" });
  const answered = event("warn", { type: "backendCallResult", status: 404, error: null });
  assert.match(outcome(WON, allowed, start, answered, done(404)), /route api · backend 127\.0\.0\.1:1 returned 404$/);
});

test("what decided is not guessed while the request runs, nor from a callout or a mirror", () => {
  assert.equal(outcome(WON), "GET http://a/x → no response in 2 µs · route api");
  const mirror = event("error", { type: "backendCallResult", status: null, error: "reset" }, { scope: ["mirror"] });
  assert.match(outcome(WON, mirror, done(504, "request timeout")), / · request timeout$/);
  assert.equal(outcomeOf([]).request, "");
});

test("a long stream has its status, its idle time and its traffic", () => {
  const moved = { chunks: 2, bytes: 90 };
  const nothing = { chunks: 0, bytes: 0 };
  const progress = event("info", { type: "streamProgress", received: nothing, sent: moved, idle: "1.250s" });
  const head = event("info", {
    type: "responseSnapshot",
    stage: "final response",
    requestState: { response: { code: 200 } },
  });
  const seen = outcomeOf(rowsOf([snapshot, WON, head, progress]));
  assert.equal(seen.status, "200 streaming");
  assert.equal(seen.why, "idle 1.250s, received 0 B in 0 chunks, sent 90 B in 2 chunks");
  assert.equal(outcomeOf(rowsOf([snapshot, WON, head])).status, "");
  assert.equal(outcomeOf(rowsOf([snapshot, WON, head, progress, done(200)])).why, "the only route that matches");
  const connection = event("info", { type: "requestStarted", protocol: "tls" });
  assert.equal(outcomeOf(rowsOf([connection, WON, progress])).status, "open");
});

test("a request rejected by the engine has no route and no request, only the reason", () => {
  const line = outcomeLine(outcomeOf(rowsOf([done(431, "request head too large")])));
  assert.equal(line, "a request that could not be read → 431 in 3 µs · request head too large");
});

const finished = (grpc: Fields) => event("info", { type: "requestFinished", status: 200, error: null, grpc });
const start = event("info", { type: "backendCallStart", target: "10.0.0.1:80" });
const result = event("info", { type: "backendCallResult", status: 200, error: null });

test("a failed gRPC call is an error, also with status 200, and one without a status", () => {
  const line = (grpc: Fields) => outcome(WON, start, result, finished(grpc));
  assert.equal(
    line({ status: 14 }),
    "GET http://a/x → 200, grpc-status 14 (UNAVAILABLE) in 3 µs · route api · backend 10.0.0.1:80 ended the call with grpc-status 14 (UNAVAILABLE)",
  );
  assert.match(line({ status: null }), /→ 200, no grpc-status in 3 µs .* ended the call with no grpc-status$/);
  assert.match(line({ status: 0 }), /→ 200, grpc-status 0 \(OK\) in 3 µs · route api · the only route that matches$/);
  const severity = (grpc: Fields) => outcomeOf(rowsOf([snapshot, finished(grpc)])).severity;
  assert.deepEqual(
    [severity({ status: 14 }), severity({ status: null }), severity({ status: 0 })],
    ["error", "error", "info"],
  );
});

test("the outcome counts retries, but not calls of policies", () => {
  const failed = event("error", { type: "backendCallResult", status: 503, error: null });
  const callout = { ...start, scope: ["extAuthz"] };
  assert.match(outcome(WON, callout, start, failed, done(503)), /backend 10\.0\.0\.1:80 returned 503$/);
  assert.match(outcome(WON, start, failed, start, failed, done(503)), /returned 503, after 1 retry$/);
  assert.match(
    outcome(WON, start, failed, start, failed, start, failed, start, result, done(200)),
    /the only route that matches, after 3 retries$/,
  );
});

test("a request that ends without a response says so", () => {
  const line = outcome(WON, done(null, "client closed the connection"));
  assert.equal(line, "GET http://a/x → no response in 3 µs · route api · client closed the connection");
});

test("a connection without requests is closed, and a request that outlives its trace is still running", () => {
  const source = { address: "10.0.0.1", port: 5000 };
  const connection = [
    event("info", { type: "requestStarted", protocol: "tcp" }),
    event("info", { type: "requestSnapshot", stage: "initial request", requestState: { source } }),
    WON,
  ];
  const line = (...end: Fields[]) => outcomeLine(outcomeOf(rowsOf([...connection, ...end])));
  assert.match(line(done(null)), /^tcp connection from 10\.0\.0\.1:5000 → closed in 3 µs · route api/);
  assert.match(line(done(null, "backend refused")), /→ closed in 3 µs · route api · backend refused$/);
  const ended = event("info", { type: "traceEnded", reason: "the duration that was asked for has passed" });
  assert.match(line(ended), /→ still running after 3 µs/);
  assert.match(outcome(WON, ended), /^GET http:\/\/a\/x → still running after 3 µs · route api$/);
});

test("a challenge of an ACME server is answered by the gateway, or goes to a route", () => {
  const challenge = (result: string) => event("info", { type: "acmeChallenge", result });
  assert.equal(
    outcome(challenge("answered"), done(200)),
    "GET http://a/x → 200 in 3 µs · response to an ACME challenge",
  );
  assert.match(outcome(challenge("unknown"), WON, done(200)), /route api · the only route that matches$/);
  const lines = treeLines([challenge("answered"), challenge("unknown")]).map(({ result, text }) => [result, text]);
  assert.deepEqual(lines, [
    ["yes", "challenge http-01  answered by the gateway, for an order of its own; no route takes part"],
    ["skipped", "challenge http-01  no order of this gateway has this token, so the request goes on to the routes"],
  ]);
  assert.equal(
    rowsOf([challenge("answered")]).map(({ label, summary }) => `${label}: ${summary}`)[0],
    "ACME: answered by the gateway, for an order of its own; no route takes part",
  );
});
