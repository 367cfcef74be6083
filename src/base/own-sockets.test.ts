import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { OwnSockets } from "./own-sockets.ts";

test("a port counts from its note until the last socket on it has closed", () => {
  const own = new OwnSockets();
  assert.equal(own.find("tcp", 8080), undefined);
  const [first, second] = [own.addPort("tcp", "bind", 8080), own.addPort("tcp", "bind", 8080)];
  assert.equal(own.find("tcp", 8080), "bind");
  first();
  // Closing twice must not count for the other socket.
  first();
  assert.equal(own.find("tcp", 8080), "bind");
  second();
  assert.equal(own.find("tcp", 8080), undefined);
});

test("ports of TCP and UDP are different ones, and so are neighbors in a byte", () => {
  const own = new OwnSockets();
  const forget = own.addPort("udp", "bind", 5300);
  own.addPort("udp", "bind", 5301);
  assert.equal(own.find("tcp", 5300), undefined);
  for (const port of [5299, 5302, 5308]) assert.equal(own.find("udp", port), undefined);
  forget();
  assert.deepEqual([own.find("udp", 5300), own.find("udp", 5301)], [undefined, "bind"]);
});

test("the lowest and the highest port fit", () => {
  const own = new OwnSockets();
  for (const port of [1, 65_535]) own.addPort("tcp", "server", port);
  assert.deepEqual([own.find("tcp", 1), own.find("tcp", 65_535), own.find("udp", 1)], ["server", "server", undefined]);
});

test("a server takes precedence over a bind with the same port", () => {
  const own = new OwnSockets();
  own.addPort("tcp", "bind", 80);
  const forget = own.addPort("tcp", "server", 80);
  assert.equal(own.find("tcp", 80), "server");
  forget();
  assert.equal(own.find("tcp", 80), "bind");
});

test("all threads see every port, and the successor of a dead thread begins without its ports", () => {
  const memory = OwnSockets.memoryFor(3);
  const [main, one, two] = [0, 1, 2].map((thread) => new OwnSockets(memory, thread));
  assert.ok(main !== undefined && one !== undefined && two !== undefined);
  main.addPort("tcp", "server", 15000);
  one.addPort("tcp", "bind", 80);
  two.addPort("tcp", "bind", 80);
  two.addPort("tcp", "bind", 443);
  for (const each of [main, one, two]) {
    assert.deepEqual(
      [15000, 80, 443].map((port) => each.find("tcp", port)),
      ["server", "bind", "bind"],
    );
  }
  const successor = new OwnSockets(memory, 2);
  assert.deepEqual(
    [15000, 80, 443].map((port) => successor.find("tcp", port)),
    ["server", "bind", undefined],
  );
});

test("Unix sockets are known by device and inode, in all threads; their places are used again", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tracegate-own-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const paths = Array.from({ length: 9 }, (_, i) => join(folder, String(i)));
  for (const path of paths) writeFileSync(path, "");
  const [first = "", ...others] = paths;
  const inode = (path: string) => statSync(path, { bigint: true });
  const memory = OwnSockets.memoryFor(2);
  const [own, other] = [new OwnSockets(memory), new OwnSockets(memory, 1)];
  const forget = own.addUnix(first);
  assert.ok(other.hasUnix(inode(first)));
  assert.ok(!other.hasUnix(inode(others[0] ?? "")));
  const { dev, ino } = inode(first);
  assert.ok(!other.hasUnix({ dev: dev + 1n, ino }), "the same inode of another device");
  for (const path of others.slice(0, 7)) own.addUnix(path);
  assert.throws(() => own.addUnix(others[7] ?? ""), /more than 8 Unix sockets/);
  forget();
  assert.ok(!other.hasUnix(inode(first)));
  own.addUnix(others[7] ?? "");
  assert.ok(other.hasUnix(inode(others[7] ?? "")));
});
