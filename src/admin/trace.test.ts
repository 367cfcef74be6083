import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { dial, exchangeRaw, head, parseResponse } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane, type TestTrace } from "../../test/helpers/admin/test-plane.ts";
import { startAdminServer } from "./admin-server.ts";
import { AdminClient } from "./client.ts";
import type { RunningServer } from "./server/http-server.ts";

const plane = new TestPlane();
let server: RunningServer;
let address = "";
let client: AdminClient;

before(async () => {
  server = await startAdminServer(plane, { type: "localhost", port: 0 }, plane.log);
  address = server.addresses[0] ?? "";
  client = new AdminClient(`http://${address}`);
});
after(() => server.close());

/** The trace that the next watcher opens. */
async function nextTrace(): Promise<TestTrace> {
  const seen = plane.traces.length;
  await plane.until(() => plane.traces.length > seen);
  const trace = plane.traces[seen];
  assert.ok(trace);
  return trace;
}

for (const method of ["GET", "POST"])
  test(`${method} streams ready, keepalives and the events as they happen`, async () => {
    const arriving = nextTrace();
    const socket = dial(address);
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      text += String(chunk);
    });
    socket.write(head(method, "/debug/trace"));
    const trace = await arriving;
    assert.deepEqual(trace.options, { reveal: false, maxBodyBytes: 2 * 1024 * 1024 });
    while (!text.includes(": keepalive\n\n")) await once(socket, "data");
    assert.equal(trace.reader.event('{"n":1}'), true);
    while (!text.includes('data: {"n":1}\n\n')) await once(socket, "data");
    trace.reader.end();
    await once(socket, "close");
    const { status, head: fields, body } = parseResponse(text);
    assert.equal(status, 200);
    assert.match(fields, /content-type: text\/event-stream/i);
    assert.match(fields, /cache-control: no-cache/i);
    assert.match(body, /^[0-9a-f]+\r\n: ready\n\n\r\n/);
    await trace.closed;
    assert.equal(trace.reader.event("{}"), false, "a stream that is over takes nothing");
  });

test("the options reach the hub", async () => {
  const cases = [
    [
      "expression=request.path%20%3D%3D%20%22%2Fa%22&reveal=true&bodies=0",
      { expression: 'request.path == "/a"', reveal: true, maxBodyBytes: 0 },
    ],
    ["bodies=4KiB&reveal=false", { reveal: false, maxBodyBytes: 4096 }],
    ["bodies=100", { reveal: false, maxBodyBytes: 100 }],
    ["bodies=1MiB&expression=", { reveal: false, maxBodyBytes: 1024 * 1024 }],
  ] as const;
  for (const [query, options] of cases) {
    const arriving = nextTrace();
    const socket = dial(address);
    socket.write(head("POST", `/debug/trace?${query}`));
    assert.deepEqual((await arriving).options, options);
    socket.destroy();
  }
});

test("wrong options are refused before the stream begins", async () => {
  const wrong = {
    "expression=bad(": /^invalid expression: unexpected end at 1:5\n$/,
    "bodies=3MiB": /^invalid bodies "3MiB": expected bytes or a size such as 4KiB, at most 2MiB\n$/,
    "bodies=-1": /^invalid bodies/,
    "reveal=yes": /^invalid reveal "yes": expected true or false\n$/,
    [`expression=${"x".repeat(5000)}`]: /longer than 4096/,
  };
  for (const [query, message] of Object.entries(wrong)) {
    const answer = parseResponse(await exchangeRaw(address, head("POST", `/debug/trace?${query}`)));
    assert.equal(answer.status, 400, query);
    assert.match(answer.head, /content-type: text\/plain/i);
    assert.match(answer.body, message);
  }
});

test("a client that goes away closes its trace", async () => {
  const arriving = nextTrace();
  const socket = dial(address);
  socket.write(head("POST", "/debug/trace"));
  const trace = await arriving;
  await once(socket, "data");
  socket.destroy();
  await trace.closed;
});

test("events for a slow reader are bounded; the hub is notified when there is room again", async () => {
  const arriving = nextTrace();
  const socket = dial(address);
  socket.write(head("POST", "/debug/trace"));
  socket.pause();
  const trace = await arriving;
  const event = JSON.stringify({ padding: "x".repeat(64 * 1024) });
  let taken = 0;
  // The system's socket buffers take some megabytes before the server's own buffer fills; each turn lets it write.
  while (trace.reader.event(event)) {
    taken++;
    assert.ok(taken < 2000, "the buffer is bounded");
    await new Promise(setImmediate);
  }
  const drained = new Promise<void>((resolve) => {
    trace.reader.onDrain = resolve;
  });
  let received = 0;
  socket.on("data", (chunk) => {
    received += chunk.length;
  });
  socket.resume();
  await drained;
  assert.equal(trace.reader.event('{"type":"dropped"}'), true);
  trace.reader.end();
  await once(socket, "close");
  assert.ok(received > taken * event.length, "what was taken was delivered");
});

test("the client yields each event's text and ends with the stream", async () => {
  const arriving = nextTrace();
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
  let arriving = nextTrace();
  const left = leave(client.trace());
  let trace = await arriving;
  trace.reader.event("{}");
  await left;
  await trace.closed;

  arriving = nextTrace();
  const closed = client.trace();
  const ended = leave(closed);
  trace = await arriving;
  closed.close();
  await ended;
  await trace.closed;

  arriving = nextTrace();
  const stop = new AbortController();
  const stream = client.trace({ signal: stop.signal });
  await stream.opened;
  const failed = assert.rejects(leave(stream), { kind: "aborted" });
  stop.abort();
  await failed;
  await (await arriving).closed;
});

test("the client tells why a trace was refused", async () => {
  const stream = client.trace({ expression: "bad(" });
  await assert.rejects(stream.opened, {
    kind: "status",
    status: 400,
    body: "invalid expression: unexpected end at 1:5",
  });
});

test("closing the server ends its streams and what it waits for", async () => {
  const own = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log);
  const target = own.addresses[0] ?? "";
  const arriving = nextTrace();
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

test("a profile stops when its client goes away", async () => {
  plane.holdProfiles = true;
  const before = plane.profiles.length;
  const socket = dial(address);
  socket.write(head("GET", "/debug/pprof/profile"));
  await plane.until(() => plane.profiles.length > before);
  const signal = plane.profiles[before]?.signal;
  assert.ok(signal);
  const aborted = once(signal, "abort");
  socket.destroy();
  await aborted;
  plane.holdProfiles = false;
});
