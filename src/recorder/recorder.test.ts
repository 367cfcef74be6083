import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonNumber } from "./codes.ts";
import { kindNumber, SLOT } from "./layout.ts";
import { RecorderMemory } from "./memory.ts";
import { MAX_NAME } from "./names.ts";
import { type Decider, type Place, Recorder } from "./recorder.ts";
import { Records } from "./records.ts";
import { SlotReader } from "./slots.ts";

const LABELS = {
  bind: "8080",
  protocol: "http",
  gateway: "default/default",
  listener: "web",
  route: "default/shop",
  route_rule: "unknown",
  backend: "unknown",
};
const ALL = { since: 0, limit: 1000 };

/** Records a request that ended at `now`, `performance.now()` ms. */
function write(recorder: Recorder, place: Place, id: string, now: number, status = 200): void {
  const fields = recorder.open(place, now - 1, now);
  fields.status = status;
  if (status === 403) fields.reason = reasonNumber("Authorization");
  recorder.message("GET", "HTTP/1.1");
  recorder.texts(id, "shop.example", `/${id}`);
  recorder.close(place, now);
}

test("failures of one route do not displace those of another, and are found when the ring has turned many times", () => {
  const memory = RecorderMemory.create(16 * SLOT, 32 * SLOT);
  const recorder = new Recorder(memory, 0);
  const records = new Records([memory]);
  const shop = recorder.place(LABELS);
  const admin = recorder.place({ ...LABELS, route: "default/admin" });
  write(recorder, admin, "rare", 1000, 403);
  // A flood: 60 seconds with 500 failures each.
  for (let i = 0; i < 30_000; i++) write(recorder, shop, `flood-${i}`, 1000 + i * 2, 403);
  const [rare] = records.withId("rare").records;
  assert.equal(rare?.route, "default/admin");
  assert.equal(rare?.kept, true);
  const { records: found, requests } = records.find(ALL);
  const ofShop = found.filter(({ route }) => route === "default/shop");
  assert.ok(ofShop.length >= 31, "the flood has the rest of the room");
  assert.equal(requests, 30_001);
  const kept = ofShop.filter((record) => record.kept === true);
  // Of each second, the last record that was kept counts the others.
  assert.ok(kept.some(({ leftOut }) => leftOut === 480));
});

test("a replacement continues where a dead worker ended: numbers, names, kept records and their share", () => {
  const memory = RecorderMemory.create(8 * SLOT, 4 * SLOT);
  const records = new Records([memory]);
  const first = new Recorder(memory, 0);
  const place = first.place(LABELS);
  write(first, place, "denied", 1000, 403);
  write(first, place, "served", 1001);
  const second = new Recorder(memory, 0);
  const again = second.place(LABELS);
  const other = second.place({ ...LABELS, route: "default/other" });
  write(second, again, "later", 1002);
  assert.deepEqual(
    records.find(ALL).records.map(({ id, number, route, path }) => ({ id, number, route, path })),
    [
      { id: "later", number: 3, route: "default/shop", path: "/later" },
      { id: "served", number: 2, route: "default/shop", path: "/served" },
      { id: "denied", number: 1, route: "default/shop", path: "/denied" },
    ],
  );
  for (let i = 0; i < 20; i++) write(second, other, `flood-${i}`, 1003 + i, 403);
  assert.equal(records.withId("denied").records.length, 1, "it belongs to its route still");
});

test("a look-up finds all records of one id, trace or number, those that are kept once, and how far records reach", () => {
  const memories = [RecorderMemory.create(8 * SLOT, 4 * SLOT), RecorderMemory.create(8 * SLOT, 4 * SLOT)];
  const trace = "0af7651916cd43dd8448eb211c80319c";
  for (const [worker, memory] of memories.entries()) {
    const recorder = new Recorder(memory, worker);
    const place = recorder.place(LABELS);
    write(recorder, place, "denied-1", 1000, 403);
    // Of the same length, with the same last character.
    write(recorder, place, "served-1", 1001);
    const fields = recorder.open(place, 1001, 1002);
    [fields.trace0, fields.trace1, fields.trace2, fields.trace3] = [0x0af76519, 0x16cd43dd, 0x8448eb21, 0x1c80319c];
    recorder.texts("other", "shop.example", "/traced");
    recorder.close(place, 1002);
  }
  const records = new Records(memories);
  const found = (id: string): unknown[] =>
    records
      .withId(id)
      .records.map(({ worker, path }) => [worker, path])
      .sort();
  assert.deepEqual(found("denied-1"), [
    [0, "/denied-1"],
    [1, "/denied-1"],
  ]);
  assert.deepEqual(found("1-2"), [[1, "/served-1"]]);
  assert.deepEqual(found("1-4"), []);
  assert.deepEqual(found(`00-${trace}-00f067aa0ba902b7-01`), [
    [0, "/traced"],
    [1, "/traced"],
  ]);
  assert.deepEqual(found(""), []);
  const { found: none, requests, keptSince } = records.withId("absent");
  assert.deepEqual([none, requests, keptSince !== undefined], [0, 6, true]);
});

test("a record has its trace id, whatever words of it are zero, and none without a trace", () => {
  for (const [words, traceId] of [
    [[0, 0, 0, 1], "00000000000000000000000000000001"],
    [[0x80000000, 0, 0, 0], "80000000000000000000000000000000"],
    [[0, 0, 0, 0], undefined],
  ] as const) {
    const memory = RecorderMemory.create(8 * SLOT, 8 * SLOT);
    const recorder = new Recorder(memory, 0);
    const fields = recorder.open(recorder.place(LABELS), 1000, 1001);
    [fields.trace0, fields.trace1, fields.trace2, fields.trace3] = words;
    recorder.texts("traced", "shop.example", "/traced");
    recorder.close(recorder.place(LABELS), 1001);
    assert.equal(new Records([memory]).find(ALL).records[0]?.traceId, traceId);
  }
});

test("an answer vouches for no request that ended a moment ago, as its thread may not have written it yet", () => {
  const before = Date.now();
  const { until } = new Records([RecorderMemory.create(8 * SLOT, 8 * SLOT)]).find(ALL);
  assert.ok(Date.parse(until) <= Date.now() - 250 && Date.parse(until) >= before - 250, until);
});

test("a period has the requests that ended in it, also those that began before", () => {
  const memory = RecorderMemory.create(8 * SLOT, 8 * SLOT);
  const recorder = new Recorder(memory, 0);
  const place = recorder.place(LABELS);
  write(recorder, place, "before", 1000);
  recorder.open(place, 2000, 9000);
  recorder.texts("long", "shop.example", "/long");
  recorder.close(place, 9000);
  write(recorder, place, "later", 12_000);
  const since = Date.now() - performance.now() + 5000;
  const { records, requests } = new Records([memory]).find({ ...ALL, since });
  assert.deepEqual(
    records.map(({ id }) => id),
    ["later", "long"],
  );
  assert.equal(requests, 2);
});

test("kept records do not count as a turn of the ring, before which records are complete", () => {
  const memory = RecorderMemory.create(8 * SLOT, 8 * SLOT);
  const recorder = new Recorder(memory, 0);
  const place = recorder.place(LABELS);
  for (let i = 0; i < 4; i++) write(recorder, place, `denied-${i}`, 1000 + i, 403);
  const records = new Records([memory]);
  assert.equal(records.find(ALL).completeSince, undefined);
  for (let i = 0; i < 8; i++) write(recorder, place, `served-${i}`, 2000 + i);
  const { completeSince, keptSince = "" } = records.find(ALL);
  assert.ok(completeSince !== undefined && completeSince > keptSince);
});

test("from a ring that has turned in part, the newest records are found in their order, with the next slot unfinished or not", () => {
  for (const count of [3, 7, 8, 9, 12, 16, 19]) {
    const memory = RecorderMemory.create(8 * SLOT, SLOT);
    const recorder = new Recorder(memory, 0);
    const place = recorder.place(LABELS);
    for (let i = 1; i <= count; i++) write(recorder, place, `${i}`, 1000 + i);
    const reader = new SlotReader(memory);
    const isFirst = (): boolean => {
      for (let back = 0; back < 8; back++)
        if (reader.read(memory.recent, (reader.newestIn(memory.recent) - back + 8) % 8))
          return reader.fields.number === count;
      return false;
    };
    assert.ok(isFirst(), `${count} records`);
    recorder.open(place, 0, 1);
    assert.ok(isFirst(), `${count} records and an unfinished one`);
  }
});

test("exemplars are kept requests, not others and not connections", () => {
  const memory = RecorderMemory.create(16 * SLOT, 16 * SLOT);
  const recorder = new Recorder(memory, 3);
  const place = recorder.place(LABELS);
  write(recorder, place, "served", 1000);
  write(recorder, place, "denied", 1001, 403);
  const fields = recorder.open(place, 1001, 1002);
  fields.kind = kindNumber("connection");
  fields.reason = reasonNumber("UpstreamFailure");
  recorder.texts(undefined, "", "");
  recorder.close(place, 1002);
  const exemplars = new Records([
    RecorderMemory.create(SLOT, SLOT),
    RecorderMemory.create(SLOT, SLOT),
    memory,
  ]).exemplars();
  const idsOf = (method: string, status: string): unknown[] =>
    (exemplars.of("request_duration_seconds", ["default/shop", method, status]) ?? []).map((each) => each?.labels);
  assert.deepEqual(idsOf("safe", "4xx"), [{ record_id: "2-2", request_id: "denied" }]);
  assert.deepEqual(idsOf("safe", "2xx"), []);
  assert.deepEqual(idsOf("other", ""), [], "the connection");
});

test("the address of a client is recorded only where the configuration wants it", () => {
  const addresses = [
    ["192.0.2.7", "192.0.2.7:4711"],
    ["2001:db8::1", "[2001:db8::1]:4711"],
    // Addresses that embed one of IPv4, in NAT64 and 6to4.
    ["64:ff9b::c000:207", "[64:ff9b::c000:207]:4711"],
    ["2002:c000:207::1", "[2002:c000:207::1]:4711"],
  ] as const;
  for (const [address, shown] of addresses) {
    const clients = [true, false].map((clientAddress) => {
      const memory = RecorderMemory.create(SLOT, SLOT);
      const recorder = new Recorder(memory, 0, clientAddress);
      const place = recorder.place(LABELS);
      recorder.open(place, 0, 1);
      recorder.client(address, 4711);
      recorder.texts(undefined, "", "/");
      recorder.close(place, 1);
      return new Records([memory]).find(ALL).records[0]?.client;
    });
    assert.deepEqual(clients, [shown, undefined]);
  }
});

test("a record can be read whose decider was too long for a name", () => {
  for (const excess of [0, 1, 2, 3]) {
    const memory = RecorderMemory.create(SLOT, SLOT);
    const recorder = new Recorder(memory, 0);
    const place = recorder.place(LABELS);
    const deciderOf = (field: string): Decider => ({ policy: "authorization", origin: { path: [field] } });
    const decider = deciderOf("x".repeat(MAX_NAME + excess - JSON.stringify(deciderOf("")).length));
    recorder.open(place, 0, 1).decider = recorder.decider(decider);
    recorder.close(place, 1);
    assert.deepEqual(new Records([memory]).find(ALL).records[0]?.decider, excess === 0 ? decider : undefined);
  }
});
