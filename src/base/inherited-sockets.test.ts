import assert from "node:assert/strict";
import { test } from "node:test";
import { InheritedSockets } from "./inherited-sockets.ts";

const sockets = (...addresses: string[]): { fd: number; address: string }[] =>
  addresses.map((address, i) => ({ address, fd: 10 + i }));

test("every socket goes to a thread, whether there are more threads or more sockets", () => {
  const more = new InheritedSockets(sockets("a", "b", "a", "a"), { takesOver: true });
  assert.deepEqual(more.divide(["a", "c"], 2), [{ a: [10, 13] }, { a: [12] }]);
  // An empty list says that other threads have the sockets: this one may not be able to join them.
  assert.deepEqual(more.divide(["b"], 2), [{ b: [11] }, { b: [] }]);
  assert.deepEqual(more.divide(["b"], 1), [{ b: [] }]);
  assert.ok(more.has("b") && !more.has("c"));
});

test("sockets of a service manager are told from those of a process", () => {
  assert.ok(new InheritedSockets(sockets("a")).ofServiceManager);
  assert.ok(!new InheritedSockets(sockets("a"), { takesOver: true }).ofServiceManager);
  assert.ok(!new InheritedSockets().ofServiceManager);
});

test("on a system without IPv6, any address is that of IPv4, whichever is written", () => {
  const any = new InheritedSockets(sockets("0.0.0.0:80", "[::]:81"), { ipv6: false });
  assert.ok(any.has("[::]:80") && any.has("0.0.0.0:80") && any.has("0.0.0.0:81"));
  assert.deepEqual(any.divide(["[::]:80", "0.0.0.0:81"], 1), [{ "[::]:80": [10], "0.0.0.0:81": [11] }]);
  const both = new InheritedSockets(sockets("0.0.0.0:80"));
  assert.ok(!both.has("[::]:80"));
});
