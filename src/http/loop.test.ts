import assert from "node:assert/strict";
import { test } from "node:test";
import { isOwnRequest, PROCESS_ID } from "../base/process-id.ts";
import { FIRST_HOP, headEnd, isLoop, MAX_HOPS, nextHop } from "./loop.ts";

const OWN = `tracegate; by=${PROCESS_ID}; hops=`;

test("each gateway adds one hop to the count, even if another program wrote the previous entry", () => {
  assert.equal(nextHop(""), `${OWN}1`);
  assert.equal(nextHop(FIRST_HOP), `${OWN}2`);
  assert.equal(nextHop("tracegate; by=0123456789abcdef; hops=3"), `${OWN}4`);
  assert.equal(nextHop("TraceGate;hops=3 ; by=x"), `${OWN}4`);
  assert.equal(nextHop(`tracegate; hops=${MAX_HOPS - 1}`), `${OWN}${MAX_HOPS}`);
});

test("a request that has passed too many gateways is a loop, whichever of its entries says so", () => {
  for (const field of [`tracegate; hops=${MAX_HOPS}`, `tracegate, a, TraceGate;by=x ; hops=${MAX_HOPS + 1}, tracegate`])
    assert.ok(isLoop(field), field);
  for (const field of ["", "a", `tracegate; hops=${MAX_HOPS - 1}`, `tracegate2; hops=${MAX_HOPS}`])
    assert.ok(!isLoop(field), field);
});

test("what a request causes besides its first attempt counts four hops", () => {
  assert.equal(nextHop("", true), `${OWN}4`);
  assert.equal(nextHop("tracegate; hops=1", true), `${OWN}5`);
});

test("further entries do not lower the count, nor do unreadable ones", () => {
  assert.equal(nextHop("tracegate; hops=0, tracegate; hops=5, tracegate"), `${OWN}6`);
  for (const text of [
    "tracegate",
    "tracegate;",
    "tracegate; hops=-9",
    "tracegate; hops=0",
    "tracegate; hops=1e-9",
    "tracegate; hops=99999",
  ])
    assert.equal(nextHop(text), `${OWN}2`, text);
});

test("entries of other proxies are kept, up to a limit", () => {
  assert.equal(
    nextHop("cdn.example; x=1, tracegate; hops=1,, tracegate2; hops=7"),
    `${OWN}2, cdn.example; x=1, tracegate2; hops=7`,
  );
  const many = Array.from({ length: 10_000 }, (_, i) => `p${i}`).join(",");
  const sent = nextHop(`${many}, tracegate; hops=2`);
  assert.ok(sent.startsWith(`${OWN}3, p0, p1`) && sent.length < 1200);
  assert.equal(nextHop(`${" ,".repeat(30_000)}\tTraceGate ;hops=2 ,a ,tracegate`), `${OWN}3, a`);
});

test("a process recognizes its own requests", () => {
  assert.ok(isOwnRequest(FIRST_HOP));
  assert.ok(isOwnRequest(`cdn.example, ${nextHop("tracegate; hops=4")}`));
  assert.ok(!isOwnRequest("") && !isOwnRequest("tracegate; by=0123456789abcdef; hops=1"));
});

test("as a line of a head", () => {
  assert.equal(headEnd(FIRST_HOP), `cdn-loop: ${FIRST_HOP}\r\n\r\n`);
  const second = nextHop(FIRST_HOP);
  assert.equal(headEnd(second), `cdn-loop: ${OWN}2\r\n\r\n`);
});
