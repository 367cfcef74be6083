import assert from "node:assert/strict";
import { test } from "node:test";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import type { AccessRecord } from "../access-record.ts";
import type { Arrived, CallFacts } from "./conventions.ts";
import { STABLE } from "./stable-conventions.ts";

const ARRIVED: Arrived = {
  method: "GET",
  scheme: "https",
  authority: "shop.example",
  userAgent: undefined,
  client: { remoteAddress: "2001:db8::7", remotePort: 4711, rawAddress: "192.0.2.1", rawPort: 4712 },
};
const RECORD: AccessRecord = { time: 0, protocol: "http", bytesReceived: 0, bytesSent: 0, durationMs: 1, status: 200 };

function server(
  record: Partial<AccessRecord> = {},
  { grpc = false, route = "/*", ...arrived }: Partial<Arrived & { grpc: boolean; route: string }> = {},
) {
  return STABLE.server({
    arrived: { ...ARRIVED, ...arrived },
    record: { ...RECORD, ...record },
    route,
    grpc,
    recordId: undefined,
    decidedBy: undefined,
  });
}

function client(facts: Partial<CallFacts>) {
  const call = { kind: "Primary", subtype: "Http", target: "10.0.0.7:8080" } as const;
  return STABLE.client({
    ...call,
    status: undefined,
    grpcStatus: undefined,
    error: undefined,
    code: undefined,
    ...facts,
  });
}

/** What a span says about how it ended. */
function outcome({ error, attributes }: ReturnType<typeof STABLE.server>) {
  return [error, attributes["error.type"]];
}

test("a method that clients have invented makes no name of its own", () => {
  const { name, attributes } = server({}, { method: "BREW" });
  assert.equal(name, "HTTP /*");
  assert.deepEqual([attributes["http.request.method"], attributes["http.request.method_original"]], ["_OTHER", "BREW"]);
  assert.equal(server().attributes["http.request.method_original"], undefined);
});

test("the server's address and port are those that the client asked for", () => {
  const of = (authority: string): unknown[] => {
    const { attributes } = server({}, { authority });
    return [attributes["server.address"], attributes["server.port"]];
  };
  assert.deepEqual(of("shop.example:8443"), ["shop.example", 8443]);
  assert.deepEqual(of("shop.example"), ["shop.example", undefined]);
  assert.deepEqual(of("[2001:db8::1]:80"), ["2001:db8::1", 80]);
  assert.deepEqual(of("[2001:db8::1]"), ["2001:db8::1", undefined]);
});

test("a call names a socket file as the server, without a port", () => {
  const { attributes } = client({ target: "unix:/run/app.sock" });
  assert.deepEqual([attributes["server.address"], attributes["server.port"]], ["/run/app.sock", undefined]);
});

test("the peer is the other end of the connection: a proxy in front of the gateway, or the address behind a backend's name", () => {
  const of = ({ attributes }: ReturnType<typeof STABLE.server>): unknown[] =>
    ["network.peer.address", "network.peer.port", "network.protocol.version"].map((name) => attributes[name]);
  const arrived = server({ version: "HTTP/1.1" });
  assert.deepEqual(of(arrived), ["192.0.2.1", 4712, "1.1"]);
  assert.deepEqual(
    [arrived.attributes["client.address"], arrived.attributes["client.port"]],
    ["2001:db8::7", 4711],
    "not those of the proxy",
  );
  const path = redactTarget("/", SECRET_PARAMETERS);
  const request = { method: "GET", scheme: "http", authority: "a", path, grpc: false, retry: 0 } as const;
  const peer = { address: "10.0.0.7", port: 8080 };
  const called = client({ request, target: "shop.internal:8080", connection: { peer, version: "2" } });
  assert.deepEqual(of(called), ["10.0.0.7", 8080, "2"]);
  assert.equal(called.attributes["server.address"], "shop.internal");
  const socket = client({ request, target: "unix:/run/a", connection: { peer: undefined, version: "1.1" } });
  assert.deepEqual(of(socket), [undefined, undefined, "1.1"]);
  assert.deepEqual(of(client({ request, error: "refused" })), [undefined, undefined, undefined]);
});

test("path and query are separate, both without secrets", () => {
  const of = (target: string): unknown[] => {
    const { attributes } = server({ path: redactTarget(target, SECRET_PARAMETERS) });
    return [attributes["url.path"], attributes["url.query"]];
  };
  assert.deepEqual(of("/a;jsessionid=1?password=x&b=2"), ["/a;jsessionid=<redacted>", "password=<redacted>&b=2"]);
  assert.deepEqual(of("/a?"), ["/a", ""]);
  assert.deepEqual(of("/a"), ["/a", undefined]);
});

test("a server's span is an error if the server has failed, not if it has refused", () => {
  const refused = server({
    status: 403,
    code: "TG_AUTHORIZATION",
    error: "denied by rules[1]",
    reason: "Authorization",
  });
  assert.deepEqual(outcome(refused), [undefined, undefined]);
  assert.equal(refused.attributes["tracegate.error"], "denied by rules[1]");
  assert.deepEqual(outcome(server({ status: 500 })), ["", "500"]);
  const failed = server({ status: 503, code: "TG_NO_BACKENDS", error: "no valid backends" });
  assert.deepEqual(outcome(failed), ["no valid backends", "TG_NO_BACKENDS"]);
  assert.equal(failed.attributes["tracegate.error"], undefined);
  const broken = server({ error: "upstream closed", code: "TG_UPSTREAM_FAILED" });
  assert.deepEqual(outcome(broken), ["upstream closed", "TG_UPSTREAM_FAILED"]);
  const left = server({ status: 0, reason: "ClientGone" });
  assert.deepEqual(outcome(left), ["", "ClientGone"]);
  assert.equal(left.attributes["http.response.status_code"], undefined);
  assert.deepEqual(outcome(server({ status: 302 })), [undefined, undefined]);
});

test("a gRPC status that blames the caller is an error of the call only", () => {
  const request = {
    method: "POST",
    scheme: "http",
    authority: "a",
    path: redactTarget("/s.S/M", SECRET_PARAMETERS),
    grpc: true,
    retry: 0,
  } as const;
  const of = (grpcStatus: number): unknown[] => [
    outcome(server({ grpcStatus }, { grpc: true })),
    outcome(client({ request, status: 200, grpcStatus })),
  ];
  assert.deepEqual(of(0), [
    [undefined, undefined],
    [undefined, undefined],
  ]);
  assert.deepEqual(of(7), [
    [undefined, undefined],
    ["", "PERMISSION_DENIED"],
  ]);
  assert.deepEqual(of(14), [
    ["", "UNAVAILABLE"],
    ["", "UNAVAILABLE"],
  ]);
  assert.deepEqual(of(99), [
    [undefined, undefined],
    ["", "99"],
  ]);
});

test("a call without a response has the class of its error; responses with 4xx are errors to a client", () => {
  assert.deepEqual(outcome(client({ error: "connection refused", code: "TG_UPSTREAM_FAILED" })), [
    "connection refused",
    "TG_UPSTREAM_FAILED",
  ]);
  assert.deepEqual(outcome(client({ error: "no answer" })), ["no answer", "_OTHER"]);
  assert.deepEqual(outcome(client({ status: 404 })), ["", "404"]);
  assert.deepEqual(outcome(client({})), [undefined, undefined], "a policy has responded instead");
});
