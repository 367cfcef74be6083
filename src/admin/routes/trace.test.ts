import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { dial, exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestAdmin } from "../../../test/helpers/admin/test-admin.ts";

const admin = new TestAdmin();
const { plane } = admin;

for (const method of ["GET", "POST"])
  test(`${method} streams ready, keepalives and the events as they happen`, async () => {
    const arriving = plane.nextTrace();
    const socket = dial(admin.address);
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
    ["duration=1m30s", { reveal: false, maxBodyBytes: 2 * 1024 * 1024, maxMs: 90_000 }],
    ["bodies=100", { reveal: false, maxBodyBytes: 100 }],
    ["bodies=1MiB&expression=", { reveal: false, maxBodyBytes: 1024 * 1024 }],
  ] as const;
  for (const [query, options] of cases) {
    const arriving = plane.nextTrace();
    const socket = dial(admin.address);
    socket.write(head("POST", `/debug/trace?${query}`));
    assert.deepEqual((await arriving).options, options);
    socket.destroy();
  }
});

test("invalid options are rejected before the stream begins", async () => {
  const wrong = {
    "expression=bad(": /^invalid expression: unexpected end at 1:5\n$/,
    "bodies=3MiB": /^invalid bodies "3MiB": expected bytes or a size such as 4KiB, at most 2MiB\n$/,
    "bodies=-1": /^invalid bodies/,
    "duration=10": /^invalid duration "10": expected a duration such as 30s, at most 24h\n$/,
    "duration=25h": /^invalid duration/,
    "duration=0s": /^invalid duration/,
    "reveal=yes": /^invalid reveal "yes": expected true or false\n$/,
    [`expression=${"x".repeat(5000)}`]: /longer than 4096/,
  };
  for (const [query, message] of Object.entries(wrong)) {
    const answer = parseResponse(await exchangeRaw(admin.address, head("POST", `/debug/trace?${query}`)));
    assert.equal(answer.status, 400, query);
    assert.match(answer.head, /content-type: text\/plain/i);
    assert.match(answer.body, message);
  }
});

test("a client that disconnects closes its trace", async () => {
  const arriving = plane.nextTrace();
  const socket = dial(admin.address);
  socket.write(head("POST", "/debug/trace"));
  const trace = await arriving;
  await once(socket, "data");
  socket.destroy();
  await trace.closed;
});
