import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import type { RunningServer } from "../server/http-server.ts";
import { AdminClient } from "./client.ts";

const plane = new TestPlane();
let server: RunningServer;
let address = "";
let client: AdminClient;

before(async () => {
  server = await startAdminServer(plane, { type: "localhost", port: 0 }, plane.log, unguarded());
  address = server.addresses[0] ?? "";
  client = new AdminClient(`http://${address}`);
});
after(() => server.close());

test("the client yields each event's text and ends with the stream", async () => {
  const arriving = plane.nextTrace();
  const stream = client.trace({ expression: "true", reveal: true, bodies: "1KiB" });
  await stream.opened;
  const trace = await arriving;
  assert.deepEqual(trace.options, { expression: "true", reveal: true, maxBodyBytes: 1024 });
  trace.reader.event('{"n":1}');
  trace.reader.event('{"text":"ü\\n"}');
  trace.reader.end();
  const events: string[] = [];
  for await (const { raw } of stream) events.push(raw);
  assert.deepEqual(events, ['{"n":1}', '{"text":"ü\\n"}']);
});

test("leaving the client's iteration, closing it or aborting stops the trace", async () => {
  const leave = async (stream: AsyncIterable<unknown>): Promise<void> => {
    for await (const _ of stream) break;
  };
  let arriving = plane.nextTrace();
  const left = leave(client.trace());
  let trace = await arriving;
  trace.reader.event("{}");
  await left;
  await trace.closed;

  arriving = plane.nextTrace();
  const closed = client.trace();
  const ended = leave(closed);
  trace = await arriving;
  closed.close();
  await ended;
  await trace.closed;

  arriving = plane.nextTrace();
  const stop = new AbortController();
  const stream = client.trace({ signal: stop.signal });
  await stream.opened;
  const failed = assert.rejects(leave(stream), { kind: "aborted" });
  stop.abort();
  await failed;
  await (await arriving).closed;
});

test("the client reports why a trace was rejected", async () => {
  const stream = client.trace({ expression: "bad(" });
  await assert.rejects(stream.opened, {
    kind: "status",
    status: 400,
    body: "invalid expression: unexpected end at 1:5",
  });
});
