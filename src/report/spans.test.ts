import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptsOf, receivedRow } from "./exchange.ts";
import { rowsOf } from "./rows.ts";
import { spansOf } from "./spans.ts";

const timing = {
  reusedConnection: false,
  dns: "0.000010s",
  connect: "0.000020s",
  tls: "0.000030s",
  firstByte: "0.001s",
};
const sent = {
  type: "requestSnapshot",
  stage: "final request",
  requestState: { request: { method: "GET", uri: "http://a/" } },
};
const rows = rowsOf([
  { eventStart: null, eventEnd: 100, message: { type: "requestStarted" } },
  { eventStart: null, eventEnd: 150, message: sent },
  { eventStart: null, eventEnd: 160, message: { type: "backendCallStart", target: "10.0.0.1:80" } },
  {
    eventStart: 160,
    eventEnd: 400,
    severity: "error",
    message: { type: "backendCallResult", status: 503, error: null, timing },
  },
  {
    eventStart: null,
    eventEnd: 410,
    message: { type: "policy", kind: "retry", result: { type: "apply", details: "retry 1" } },
  },
  {
    eventStart: null,
    eventEnd: 420,
    scope: ["extAuthz"],
    message: { type: "backendCallStart", target: "10.0.0.9:80" },
  },
  { eventStart: null, eventEnd: 430, message: { type: "backendCallStart", target: "10.0.0.2:80" } },
  { message: { type: "message", text: "no time" } },
]);

test("a call has its parts one after another, any other event the time since the one before", () => {
  assert.deepEqual(rows.slice(1, 2).flatMap(spansOf), [{ name: "step", start: 100, end: 150 }]);
  const [call] = rows.slice(3, 4).map(spansOf);
  assert.deepEqual(
    call?.map(({ name, start, end }) => [name, Math.round(start), Math.round(end)]),
    [
      ["dns", 160, 170],
      ["connect", 170, 190],
      ["tls", 190, 220],
      ["call", 220, 400],
    ],
  );
  assert.deepEqual(rows.slice(-1).flatMap(spansOf), []);
});

test("attempts have their endpoint, end and retry, and calls of policies are none", () => {
  assert.deepEqual(
    attemptsOf(rows).map(({ number, target, start, result, retry }) => [
      number,
      target,
      start,
      result?.message.status,
      retry?.summary,
    ]),
    [
      [1, "10.0.0.1:80", 160, 503, "retry: retry 1"],
      [2, "10.0.0.2:80", 430, undefined, undefined],
    ],
  );
});

test("a part that would take longer than its call is left out", () => {
  const message = { type: "backendCallResult", timing: { ...timing, connect: "1s" } };
  const spans = rowsOf([{ eventStart: 100, eventEnd: 200, message }]).flatMap(spansOf);
  assert.deepEqual(
    spans.map(({ name, end }) => [name, Math.round(end)]),
    [
      ["dns", 110],
      ["tls", 140],
      ["call", 200],
    ],
  );
});

test("an attempt without a result does not get that of the next one", () => {
  const call = (target: string) => ({ message: { type: "backendCallStart", target } });
  const attempts = attemptsOf(
    rowsOf([{ message: sent }, call("a:80"), call("b:80"), { message: { type: "backendCallResult", status: 200 } }]),
  );
  assert.deepEqual(
    attempts.map(({ result }) => result?.message.status),
    [undefined, 200],
  );
});

test("the request as received is that of the client, not that of a call of a policy", () => {
  const ofPolicy = { scope: ["extAuthz"], message: sent };
  assert.equal(receivedRow(rowsOf([ofPolicy, { message: sent }]))?.number, 2);
  assert.equal(receivedRow(rowsOf([ofPolicy])), undefined);
});
