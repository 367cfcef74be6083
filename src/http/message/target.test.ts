import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseTarget, type TargetParts } from "./target.ts";

function parts(): TargetParts {
  return { authority: "", path: "", search: "", scheme: "http" };
}

/** method, target, Host → authority, path, search, scheme */
const ACCEPTED: readonly (readonly [string, string, string, TargetParts])[] = [
  ["GET", "/", "a", { authority: "a", path: "/", search: "", scheme: "http" }],
  [
    "GET",
    "/a/b%2Fc;d=1?e=f?/../g",
    "a:80",
    { authority: "a:80", path: "/a/b%2Fc;d=1", search: "?e=f?/../g", scheme: "http" },
  ],
  ["GET", "//a", "h", { authority: "h", path: "//a", search: "", scheme: "http" }],
  ["GET", "/?", "h", { authority: "h", path: "/", search: "?", scheme: "http" }],
  ["GET", "/?{}|^`\\%zz", "h", { authority: "h", path: "/", search: "?{}|^`\\%zz", scheme: "http" }],
  ["GET", "http://B.example:8080/x?y", "a", { authority: "B.example:8080", path: "/x", search: "?y", scheme: "http" }],
  ["GET", "HTTPS://b", "a", { authority: "b", path: "/", search: "", scheme: "https" }],
  ["GET", "http://b?x", "a", { authority: "b", path: "/", search: "?x", scheme: "http" }],
  ["OPTIONS", "*", "a", { authority: "a", path: "*", search: "", scheme: "http" }],
  ["OPTIONS", "http://b", "a", { authority: "b", path: "*", search: "", scheme: "http" }],
  ["GET", "/", "A.b.", { authority: "A.b", path: "/", search: "", scheme: "http" }],
  ["GET", "http://b.:81/x", "a", { authority: "b:81", path: "/x", search: "", scheme: "http" }],
  ["CONNECT", "b.:443", "a", { authority: "b:443", path: "", search: "", scheme: "http" }],
  ["CONNECT", "b:443", "a", { authority: "b:443", path: "", search: "", scheme: "http" }],
  ["CONNECT", "[::1]:443", "a", { authority: "[::1]:443", path: "", search: "", scheme: "http" }],
];

const REFUSED: readonly (readonly [string, string])[] = [
  ["GET", "a"],
  ["GET", "?a"],
  ["GET", "*"],
  ["OPTIONS", "*?a"],
  ["GET", "b:443"],
  ["CONNECT", "/"],
  ["CONNECT", "b"],
  ["CONNECT", "[::1]"],
  ["CONNECT", "http://b:80"],
  ["GET", "ftp://b/"],
  ["GET", "http:/b"],
  ["GET", "http:///a"],
  ["GET", "http://user@b/"],
  ["GET", "http://user:secret@b/"],
  ["GET", "http://b:/"],
  ["GET", "http://b\\@c/"],
  ["GET", "http://b#c"],
  ["GET", "http://b/../c"],
  ...['"', "<", ">", "#", "\\", " ", "\0", "\x7f", "\x80"].map((character) => ["GET", `/a${character}`] as const),
  ...['"', "<", ">", "#", " ", "\n", "\x7f", "\xff"].map((character) => ["GET", `/?a${character}`] as const),
  ...["%", "%1", "%zz", "%0g", "%00", "%%41"].map((escaped) => ["GET", `/a${escaped}`] as const),
  ..."/. /.. /./a /../a /a/. /a/.. /a/../b /%2e /a/%2E%2e/b /a/.%2e /..?a /..;/a /.;a=b/c /a%2f..%2fb /..%5ca /a%2F.."
    .split(" ")
    .map((target) => ["GET", target] as const),
];

const HOSTS = ["a", "A-b_c.d~e", "127.0.0.1:1", "a:65535", "[::1]", "[2001:db8::1]:80", "[::ffff:1.2.3.4]"];
const BAD_HOSTS = [
  ...[
    "",
    ":80",
    "a:",
    "a:0",
    "a:65536",
    "a:000080",
    "a:8o",
    "a:80:80",
    "a b",
    "a,b",
    "a/b",
    "a?b",
    "a#b",
    "a\\b",
    "u@a",
    "u:p@a",
  ],
  ...[
    "[",
    "[]",
    "[::1",
    "::1",
    "[::1]a",
    "[::1]:",
    "[fe80::1%eth0]",
    "[fe80::1%25eth0]",
    "[1.2.3.4]",
    "[v1.a]",
    "a%41",
    ".",
    ".:80",
    "\xe4",
  ],
];

describe("parseTarget", () => {
  for (const [method, target, host, expected] of ACCEPTED) {
    test(`accepts ${method} ${target}`, () => {
      const out = parts();
      assert.equal(parseTarget(method, target, host, 1, out), undefined);
      assert.deepEqual(out, expected);
    });
  }

  test("segments that contain dots among other characters are not dot segments", () => {
    const out = parts();
    assert.equal(parseTarget("GET", "/.../.a/a./..a/%2e%2e%2e/a..;b//", "h", 1, out), undefined);
    assert.equal(out.path, "/.../.a/a./..a/%2e%2e%2e/a..;b//");
  });

  for (const [method, target] of REFUSED) {
    test(`rejects ${method} ${JSON.stringify(target)}`, () => {
      assert.equal(parseTarget(method, target, "a", 1, parts())?.code, "TG_INVALID_REQUEST");
    });
  }

  for (const host of HOSTS) {
    test(`accepts Host ${host}`, () => {
      const out = parts();
      assert.equal(parseTarget("GET", "/", host, 1, out), undefined);
      assert.equal(out.authority, host);
    });
  }

  for (const host of BAD_HOSTS) {
    test(`rejects Host ${JSON.stringify(host)}, even if the target has an authority`, () => {
      assert.equal(parseTarget("GET", "/", host, 1, parts())?.code, "TG_INVALID_REQUEST");
      assert.equal(parseTarget("GET", "http://b/", host, 1, parts())?.code, "TG_INVALID_REQUEST");
    });
  }

  test("HTTP/1.1 needs Host, HTTP/1.0 does not; what an earlier request left is overwritten", () => {
    assert.equal(parseTarget("GET", "http://b/", undefined, 1, parts())?.code, "TG_INVALID_REQUEST");
    const out: TargetParts = { authority: "old", path: "old", search: "?old", scheme: "https" };
    assert.equal(parseTarget("GET", "/", undefined, 0, out), undefined);
    assert.deepEqual(out, { authority: "", path: "/", search: "", scheme: "https" });
  });
});
