import assert from "node:assert/strict";
import { test } from "node:test";
import { collide, formatListenAddress, listenAt, parseListenAddress } from "./listen-address.ts";

test("each form of the grammar is read and written back", () => {
  assert.deepEqual(parseListenAddress("off"), { type: "off" });
  assert.deepEqual(parseListenAddress("unix:/run/admin.sock"), { type: "unix", path: "/run/admin.sock" });
  assert.deepEqual(parseListenAddress("localhost:15000"), { type: "localhost", port: 15000 });
  assert.deepEqual(parseListenAddress("127.0.0.1:0"), { type: "socket", host: "127.0.0.1", port: 0 });
  assert.deepEqual(parseListenAddress("[::]:15020"), { type: "socket", host: "::", port: 15020 });
  for (const text of ["off", "unix:/run/admin.sock", "localhost:1", "0.0.0.0:65535", "[::1]:9"])
    assert.equal(formatListenAddress(parseListenAddress(text)), text);
});

test("an invalid address is rejected with what is wrong and what was expected", () => {
  const refused: Record<string, RegExp> = {
    "": /has no port/,
    "15000": /has no host, as localhost:15000 and 0.0.0.0:15000 have/,
    "localhost:65536": /"65536", which is not a number from 0 to 65535/,
    "localhost:+1": /not a number/,
    "localhost:": /not a number/,
    "example.com:80": /neither an IP address nor localhost/,
    ":80": /has no host, as localhost:80 and/,
    "[::1:80": /neither an IP address nor localhost/,
    "::1:80": /needs brackets: \[::1\]:80/,
    "[127.0.0.1]:80": /neither an IP address/,
    "unix:relative": /absolute path/,
    [`unix:/${"x".repeat(200)}`]: /longer than 107 bytes/,
  };
  for (const [text, message] of Object.entries(refused)) {
    assert.throws(() => parseListenAddress(text), message);
    assert.throws(() => parseListenAddress(text), /expected off, unix:/);
  }
});

test("without IPv6, the unspecified address becomes that of IPv4; no other address or error is replaced", async () => {
  const failing = (code: string) => (host: string) =>
    host === "0.0.0.0"
      ? Promise.resolve(host)
      : Promise.reject(Object.assign(new Error(`listen ${code}: ${host}`), { code }));
  assert.equal(await listenAt("::", failing("EAFNOSUPPORT")), "0.0.0.0");
  await assert.rejects(listenAt("::", failing("EADDRINUSE")), /EADDRINUSE/);
  await assert.rejects(listenAt("::1", failing("EAFNOSUPPORT")), /EAFNOSUPPORT/);
});

test("conflicts between addresses of servers", () => {
  const pairs = (text: string): boolean => {
    const [one = "", other = ""] = text.split(" ");
    const [a, b] = [parseListenAddress(one), parseListenAddress(other)];
    assert.equal(collide(a, b), collide(b, a));
    return collide(a, b);
  };
  for (const same of [
    "localhost:1 127.0.0.1:1",
    "localhost:1 [::1]:1",
    "localhost:1 0.0.0.0:1",
    "10.0.0.1:1 [::]:1",
    "unix:/a unix:/a",
  ])
    assert.ok(pairs(same), same);
  for (const apart of [
    "localhost:1 localhost:2",
    "localhost:0 localhost:0",
    "localhost:1 10.0.0.1:1",
    "[::1]:1 0.0.0.0:1",
    "unix:/a unix:/b",
    "off off",
    "off localhost:1",
    "unix:/a localhost:1",
  ])
    assert.ok(!pairs(apart), apart);
});
