import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import { startStatsServer } from "../stats-server.ts";

const admin = new TestAdmin(["admin.example"]);
const { plane } = admin;

const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("a failure shows its message, never a stack or a cause", async () => {
  plane.failure = new Error("worker 2 is gone\n    at secret (file.ts:1)", { cause: new Error("password") });
  try {
    const { status, body } = await admin.ask("GET", "/config_dump");
    assert.deepEqual([status, body], [500, "internal error: worker 2 is gone\n"]);
    assert.match(plane.lines.at(-1) ?? "", /error\tadmin request failed server=admin path=\/config_dump/);
  } finally {
    plane.failure = undefined;
  }
});

test("oversized heads and bodies and malformed requests are rejected with a message", async () => {
  const large = await admin.ask("GET", "/", ["host: localhost", `x: ${"y".repeat(9000)}`]);
  assert.equal(large.status, 431);
  assert.match(large.body, /exceed 8192 bytes/);
  const malformed = parseResponse(await exchangeRaw(admin.address, "NONSENSE\r\n\r\n"));
  assert.deepEqual([malformed.status, malformed.body], [400, "the request is not valid HTTP/1.1\n"]);
  const body = "z".repeat(70_000);
  const fields = ["host: localhost", `content-length: ${body.length}`];
  const answer = parseResponse(await exchangeRaw(admin.address, head("POST", "/logging", fields) + body));
  assert.deepEqual([answer.status, answer.body], [413, "this endpoint takes no body\n"]);
});

test("a head that does not arrive in time is 408", async () => {
  const answer = parseResponse(await exchangeRaw(admin.address, "GET / HTTP/1.1\r\nhost: local"));
  assert.equal(answer.status, 408);
});

test("a connection whose client pipelines requests is closed", async () => {
  let made = 0;
  const metricsText = (): Promise<string> => {
    made++;
    return plane.metricsText();
  };
  const server = await startStatsServer({ metricsText }, any, plane.log, unguarded());
  try {
    const [address = ""] = server.addresses;
    await exchangeRaw(address, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100));
    assert.equal(made, 1);
    const next = parseResponse(await exchangeRaw(address, head("GET", "/metrics")));
    assert.equal(next.status, 200);
  } finally {
    await server.close();
  }
});

test("closing the server ends its streams and what it waits for", async () => {
  const own = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log, unguarded());
  const target = own.addresses[0] ?? "";
  const arriving = plane.nextTrace();
  const stream = exchangeRaw(target, head("POST", "/debug/trace"));
  const trace = await arriving;
  plane.holdProfiles = true;
  const before = plane.profiles.length;
  const profile = exchangeRaw(target, head("GET", "/debug/pprof/profile?seconds=300"));
  await plane.until(() => plane.profiles.length > before);
  await own.close();
  plane.holdProfiles = false;
  assert.match(await stream, /: ready\n\n/);
  await trace.closed;
  const { status, body } = parseResponse(await profile);
  assert.deepEqual([status, body], [503, "the gateway is shutting down\n"]);
});
