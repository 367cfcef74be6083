import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestRecord } from "../../recorder/records.ts";
import { groupsOf } from "../../report/recorded.ts";
import { groupTable, recordTable } from "./print.ts";

function record(number: number, fields: Partial<RequestRecord> = {}): RequestRecord {
  return {
    time: `2026-11-28T12:00:00.${String(number).padStart(3, "0")}Z`,
    worker: 0,
    number,
    generation: 1,
    method: "GET",
    host: "shop.example",
    path: "/cart",
    status: 200,
    reason: "Upstream",
    duration: 1,
    received: 0,
    sent: 0,
    ...fields,
  };
}

test("durations and shares of any size are plain numbers", () => {
  const durations = [0, 0.0421, 7.354, 99.96, 999.6, 1234.5, 123_456, 7_200_000];
  const lines = recordTable(durations.map((duration, number) => record(number, { duration }))).split("\n");
  assert.deepEqual(
    lines.slice(1, 1 + durations.length).map((line) => line.split(/ {2,}/)[4]),
    ["0.00ms", "0.0421ms", "7.35ms", "100ms", "1000ms", "1.23s", "123s", "7200s"],
  );
  const records = [record(1), ...Array.from({ length: 199 }, (_, i) => record(i + 2, { status: 403 }))];
  const shares = (each: readonly RequestRecord[]): (string | undefined)[] =>
    groupTable(groupsOf(each, each.length), each.length)
      .split("\n")
      .slice(1, -2)
      .map((line) => line.split(/ {2,}/)[1]);
  assert.deepEqual(shares(records), ["100%", "0.5%"]);
  assert.deepEqual(shares([record(1)]), ["100%"]);
});

test("a group counts the requests that were not kept", () => {
  const kept = record(3, { status: 403, leftOut: 7 });
  const [group] = groupsOf([record(4, { status: 403, notKept: true }), kept], 16);
  assert.deepEqual([group?.count, group?.share], [8, 0.5]);
});

test("what decided: the error, else the policy that responded, with its place", () => {
  const place = { file: "gateway.yaml", line: 31, column: 7 };
  const origin = { path: ["binds", 0], place };
  const object = { kind: "HTTPRoute", namespace: "shop", name: "web" };
  const records = [
    record(1, { status: 403, reason: "Authorization", error: "TG_AUTHORIZATION", decider: { origin } }),
    record(2, { status: 302, reason: "DirectResponse", decider: { policy: "requestRedirect", origin } }),
    record(3, { status: 401, reason: "JwtAuth", error: "TG_JWT", decider: { origin: { object, path: ["spec"] } } }),
    record(4, { status: 302, reason: "DirectResponse" }),
  ];
  const [, ...lines] = recordTable(records).trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => line.split(/ {2,}/).at(-1)),
    [
      "authorization failed, at gateway.yaml:31",
      "requestRedirect, at gateway.yaml:31",
      "authentication failure, at HTTPRoute shop/web spec",
      "DirectResponse",
    ],
  );
});
