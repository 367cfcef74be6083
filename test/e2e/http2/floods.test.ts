import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  HEADERS,
  PING,
  PRIORITY,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from "../../../src/http/h2/frames.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { frame, H2Client, literals } from "../../helpers/h2-client.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";

const GET = literals([":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a.example"]);
const POST = literals([":method", "POST", ":scheme", "http", ":path", "/", ":authority", "a.example"]);
const WITHOUT_BODY = Buffer.concat([POST, literals(["content-length", "0"])]);
const NOTHING = Buffer.alloc(0);
const EIGHT = Buffer.alloc(8);
const ONE = Buffer.of(0, 0, 0, 1);
const ZERO = Buffer.alloc(4);

/** The results of `make` for the ids of `count` new streams. */
function times(count: number, make: (id: number) => Buffer[]): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * i + 3)).flat());
}

/** Attacks by their usual name, as bytes after a first request on stream 1 that stays open. */
const ATTACKS: readonly (readonly [name: string, bytes: Buffer])[] = [
  [
    "rapid reset (CVE-2023-44487)",
    times(3000, (id) => [
      frame(HEADERS, END_HEADERS | END_STREAM, id, GET),
      frame(RST_STREAM, 0, id, Buffer.of(0, 0, 0, 8)),
    ]),
  ],
  [
    "streams that the gateway has to reset (CVE-2025-8671)",
    times(3000, (id) => [frame(HEADERS, END_HEADERS, id, POST), frame(WINDOW_UPDATE, 0, id, ZERO)]),
  ],
  [
    "malformed requests, which the gateway resets too",
    times(3000, (id) => [frame(HEADERS, END_HEADERS | END_STREAM, id, literals([":method", "GET"]))]),
  ],
  [
    "requests whose bodies turn out to be malformed",
    times(3000, (id) => [frame(HEADERS, END_HEADERS, id, WITHOUT_BODY), frame(DATA, 0, id, ONE)]),
  ],
  [
    "CONTINUATION without end (CVE-2024-27316)",
    Buffer.concat([frame(HEADERS, 0, 3, GET), times(1000, () => [frame(CONTINUATION, 0, 3, NOTHING)])]),
  ],
  ["SETTINGS (CVE-2019-9515)", times(1000, () => [frame(SETTINGS, 0, 0, NOTHING)])],
  ["PING (CVE-2019-9512)", times(3000, () => [frame(PING, 0, 0, EIGHT)])],
  ["empty frames (CVE-2019-9518)", times(3000, () => [frame(DATA, 0, 1, NOTHING)])],
  ["priorities (CVE-2019-9513)", times(3000, (id) => [frame(PRIORITY, 0, id, Buffer.alloc(5))])],
  ["windows of one byte (CVE-2019-9511)", times(5000, () => [frame(WINDOW_UPDATE, 0, 0, ONE)])],
];

for (const [name, bytes] of ATTACKS)
  test(`${name} ends its own connection only`, async () => {
    await using upstream = await RawUpstream.listen(async (peer) => {
      for (;;) if ((await peer.message()).start.includes("/answered")) peer.send(reply("ok"));
    });
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    await using plane = await TestPlane.start([{ target, backendPolicies: { http: { version: "HTTP/1.1" } } }]);
    const neighbour = await H2Client.connect(plane.port);
    neighbour.request(1, "GET", [], "/answered");
    await neighbour.response(1);
    const attacker = await H2Client.connect(plane.port);
    attacker.request(1, "POST");
    attacker.peer.send(bytes);
    await attacker.closed();
    assert.match(attacker.goAways.at(-1) ?? "", /, ENHANCE_YOUR_CALM$/);
    await plane.logged("ENHANCE_YOUR_CALM");
    neighbour.request(3, "GET", [], "/answered");
    assert.equal((await neighbour.response(3)).body, "ok");
    assert.deepEqual(neighbour.goAways, []);
    neighbour.peer.socket.destroy();
    // Nothing of its requests is left.
    while (JSON.stringify(plane.plane.tasks()).includes("exchanges")) await new Promise(setImmediate);
  });

test("a busy client is not a flood: 2,000 requests, each with window updates, some of them cancelled", async () => {
  await using upstream = await RawUpstream.answering(() => reply("ok"));
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  await using plane = await TestPlane.start([{ target, backendPolicies: { http: { version: "HTTP/1.1" } } }]);
  const client = await H2Client.connect(plane.port);
  let id = 1;
  for (let round = 0; round < 40; round++) {
    const first = id;
    for (; id < first + 100; id += 2) {
      client.request(id);
      client.credit(id, 1000);
      if (id % 20 === 1) client.reset(id, 8);
    }
    await client.until(() => {
      for (let each = first; each < id; each += 2) if (each % 20 !== 1 && !client.stream(each).ended) return false;
      return true;
    }, "the responses");
    client.credit(0, 1000);
  }
  assert.deepEqual(client.goAways, []);
  client.peer.socket.destroy();
});
