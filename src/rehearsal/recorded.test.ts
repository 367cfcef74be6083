import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../recorder/records.ts";
import { stepLines } from "../report/step-lines.ts";
import { explainedRecord } from "./recorded.ts";

function lines(fields: Partial<RequestRecord>): string[] {
  const { steps } = explainedRecord({
    time: "2026-11-28T12:00:00.000Z",
    worker: 0,
    number: 1,
    generation: 1,
    path: "",
    status: 0,
    reason: "Upstream",
    duration: 12.345,
    received: 10,
    sent: 20,
    listener: "web",
    ...fields,
  });
  return stepLines(steps);
}

const REQUEST = { method: "GET", host: "a.test", path: "/cart" } as const;
const origin = { path: ["binds", 0] };

test("a request: what the backend took, after how many retries, and what is not recorded", () => {
  const called = { route: "shop/web", routeRule: "cart", backend: "shop/web:80", endpoint: "10.0.0.7:8080" };
  assert.deepEqual(
    lines({ ...REQUEST, ...called, status: 200, attempts: 3, beforeCall: 2.5, untilAnswer: 1250, client: "1.2.3.4:5" }),
    [
      "✓ request GET a.test/cart  from 1.2.3.4:5; not recorded: query, header fields, body",
      "✓ listener web",
      "✓ route shop/web rule cart",
      "✓ endpoint 10.0.0.7:8080  of shop/web:80, after 2 retries, called after 2.5 ms, responded 1.25 s later",
      "✓ response 200  by the backend, after 12.3 ms",
    ],
  );
  const error = "TG_UPSTREAM_FAILED";
  const failed = { status: 503, reason: "UpstreamFailure", error, attempts: 2, decider: { origin } } as const;
  assert.deepEqual(lines({ ...REQUEST, ...called, backend: "/key", ...failed, cut: true }), [
    "✓ request GET a.test/cart  the record has no room for the whole path; not recorded: query, header fields, body, the client's address",
    "✓ listener web",
    "✓ route shop/web rule cart",
    "✗ endpoint 10.0.0.7:8080  after a retry, upstream call failed  binds[0]",
    "✗ response 503  by the gateway: upstream call failed, after 12.3 ms",
  ]);
});

test("what ended it is shown once with its place", () => {
  const decider = { policy: "jwt", phase: "route", rule: 0, origin };
  const denied = { status: 401, reason: "JwtAuth", error: "TG_JWT", route: "shop/web" } as const;
  assert.deepEqual(lines({ ...REQUEST, ...denied, decider }).slice(3), [
    "✗ policy jwtAuth  authentication failure; of the route  binds[0]",
    "✗ response 401  by the gateway: authentication failure, after 12.3 ms",
  ]);
  const lost = { status: 404, reason: "NotFound", error: "TG_ROUTE_NOT_FOUND", decider: { origin } } as const;
  assert.deepEqual(lines({ ...REQUEST, ...lost }).slice(2), [
    "✗ route none  no route matched  binds[0]",
    "✗ response 404  by the gateway: route not found, after 12.3 ms",
  ]);
  const late = { status: 504, reason: "Timeout", error: "TG_REQUEST_TIMEOUT", route: "shop/web" } as const;
  assert.deepEqual(lines({ ...REQUEST, ...late, decider: { origin } }).slice(3), [
    "✗ response 504  by the gateway: request timeout, after 12.3 ms  binds[0]",
  ]);
  assert.match(lines({ ...REQUEST, reason: "ClientGone" }).at(-1) ?? "", /^✗ response none {2}after 12\.3 ms$/);
});

test("connections and sessions have bytes instead of a response", () => {
  const gone = { version: "tls", host: "a.test", route: "shop/tls", endpoint: "10.0.0.7:443" };
  assert.deepEqual(lines({ ...gone, kind: "connection" }), [
    "✓ connection tls a.test",
    "✓ listener web",
    "✓ route shop/tls",
    "✓ endpoint 10.0.0.7:443",
    "✓ connection ended after 12.3 ms  10 bytes from the client, 20 to it",
  ]);
  const error = "TG_AUTHORIZATION";
  assert.deepEqual(lines({ kind: "refused", version: "tcp", client: "1.2.3.4:5", error, decider: { origin } }), [
    "✗ connection tcp  from 1.2.3.4:5",
    "✓ listener web",
    "✗ connection refused after 12.3 ms: authorization failed  10 bytes from the client, 20 to it  binds[0]",
  ]);
  const unread = { kind: "unreadable", status: 400, reason: "InvalidRequest", error: "TG_INVALID_REQUEST" } as const;
  assert.deepEqual(lines(unread), [
    "✗ request that could not be read",
    "✓ listener web",
    "✗ response 400  by the gateway: invalid request, after 12.3 ms",
  ]);
  assert.match(lines({ kind: "session", version: "udp" })[0] ?? "", /^✓ connection udp, a session$/);
});
