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
  const paths = Array.from({ length: 65 }, (_, i) => join(folder, String(i)));
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
  for (const path of others.slice(0, 63)) own.addUnix(path);
  assert.throws(() => own.addUnix(others[63] ?? ""), /more than 64 Unix sockets/);
  forget();
  assert.ok(!other.hasUnix(inode(first)));
  own.addUnix(others[63] ?? "");
  assert.ok(other.hasUnix(inode(others[63] ?? "")));
});

test("a port at one address is not that port at another, unless it is open at all of them", () => {
  const memory = OwnSockets.memoryFor(2);
  const [own, other] = [new OwnSockets(memory, 0), new OwnSockets(memory, 1)];
  const forget = other.addPort("tcp", "bind", 8080, "127.0.0.1");
  other.addPort("tcp", "bind", 8080, "2001:db8::1");
  const found = (host: string): string | undefined => own.find("tcp", 8080, host);
  assert.deepEqual(["127.0.0.1", "::ffff:127.0.0.1", "2001:DB8::1", "127.0.0.2"].map(found), [
    "bind",
    "bind",
    "bind",
    undefined,
  ]);
  // Connections to these stay on this host, and a name may mean any address.
  assert.deepEqual(["0.0.0.0", "::", "app"].map(found), ["bind", "bind", "bind"]);
  assert.equal(own.find("udp", 8080, "127.0.0.1"), undefined);
  forget();
  assert.equal(found("127.0.0.1"), undefined);
  own.addPort("tcp", "bind", 8080);
  assert.equal(found("127.0.0.2"), "bind");
});

test("ports beyond the room for addresses count at all addresses", () => {
  const own = new OwnSockets();
  const forgets = Array.from({ length: 65 }, (_, i) => own.addPort("tcp", "bind", 9000 + i, "127.0.0.1"));
  assert.equal(own.find("tcp", 9000, "127.0.0.2"), undefined);
  assert.equal(own.find("tcp", 9064, "127.0.0.2"), "bind");
  for (const forget of forgets) forget();
  assert.equal(own.find("tcp", 9064), undefined);
});
