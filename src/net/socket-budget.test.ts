import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { SocketBudget, type SocketKind } from "./socket-budget.ts";

test("one kind has at most three quarters, both together the limit, and a connection that closes makes room", () => {
  const refused: SocketKind[] = [];
  const budget = new SocketBudget(8, (kind) => refused.push(kind));
  const sockets = Array.from({ length: 7 }, () => new EventEmitter());
  assert.deepEqual(
    sockets.map((socket) => budget.admit(socket)),
    [true, true, true, true, true, true, false],
  );
  const upstream = () => budget.take("upstream");
  assert.deepEqual([upstream(), upstream(), upstream()], [true, true, false]);
  for (const socket of sockets.slice(0, 4)) socket.emit("close");
  assert.deepEqual(
    Array.from({ length: 5 }, () => upstream()),
    [true, true, true, true, false],
  );
  assert.deepEqual([budget.used, budget.admit(new EventEmitter())], [{ client: 2, upstream: 6, udp: 0 }, false]);
  // An idle connection makes room for another one to a backend, not for a client.
  let closed = 0;
  budget.closeIdle = () => ++closed === 1;
  assert.deepEqual([budget.admit(new EventEmitter()), upstream(), upstream(), closed], [false, true, false, 2]);
  assert.deepEqual(refused, ["client", "upstream", "upstream", "client", "client", "upstream"]);
});

test("sessions of UDP have a quarter, and connections keep three quarters of the rest", () => {
  const rejected: string[] = [];
  const budget = new SocketBudget(16, (kind) => rejected.push(kind));
  const count = (kind: "client" | "upstream" | "udp"): number => {
    let admitted = 0;
    while (budget.take(kind)) admitted++;
    return admitted;
  };
  assert.deepEqual([count("udp"), count("client"), count("upstream")], [4, 9, 3]);
  assert.deepEqual(rejected, ["udp", "client", "upstream"]);
  const socket = new EventEmitter();
  budget.used.udp--;
  assert.ok(budget.admitSession(socket, "192.0.2.1"));
  socket.emit("close");
  assert.equal(budget.used.udp, 3);
  budget.used.udp++;
  const asked: unknown[] = [];
  assert.ok(!budget.admitSession(socket, "192.0.2.1"));
  budget.endSession = (...args) => asked.push(...args) > 0;
  assert.ok(budget.admitSession(socket, "192.0.2.1"), "another session gives way");
  assert.deepEqual(asked, ["192.0.2.1", 4]);
});
