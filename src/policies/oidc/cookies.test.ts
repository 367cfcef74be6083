import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { GatewayError } from "../../base/errors.ts";
import { SealedCookies, takeCookies } from "./cookies.ts";

const KEY = randomBytes(32);
const NOW = 1_800_000_000;
const NAME = "tracegate_oidc_s_1";
const COOKIES = new SealedCookies(KEY, "policy", true);

/** What a browser sends back of a Set-Cookie value. */
function sentBack(setCookie: string): string {
  return /^[^=]+=([^;]*)/.exec(setCookie)?.[1] ?? "";
}

function read(cookies: SealedCookies, value: string, name = NAME, now = NOW) {
  return cookies.read(new Map([[name, value]]), name, now);
}

test("an issued cookie can be read until it expires", () => {
  const value = sentBack(COOKIES.issue(NAME, { sub: "jo", name: "Jörg" }, NOW + 60, NOW));
  assert.deepEqual(read(COOKIES, value), { state: "valid", value: { sub: "jo", name: "Jörg" }, expires: NOW + 60 });
  assert.deepEqual(read(COOKIES, value, NAME, NOW + 59)?.state, "valid");
  assert.deepEqual(read(COOKIES, value, NAME, NOW + 60), { state: "expired" });
  assert.equal(COOKIES.read(new Map(), NAME), undefined);
});

test("a value that was modified, truncated or made up is invalid", () => {
  const sealed = Buffer.from(sentBack(COOKIES.issue(NAME, { sub: "jo" }, NOW + 60, NOW)), "base64url");
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.deepEqual(read(COOKIES, changed.toString("base64url")), { state: "invalid" }, `byte ${at}`);
    assert.deepEqual(read(COOKIES, sealed.subarray(0, at).toString("base64url")), { state: "invalid" }, `cut at ${at}`);
  }
  for (const text of ["", "x", "%%%", "eyJzdWIiOiJqbyJ9", "A".repeat(100)])
    assert.deepEqual(read(COOKIES, text), { state: "invalid" }, text);
});

test("a value opens only under its own name, for its own policy and with its own key", () => {
  const value = sentBack(COOKIES.issue(NAME, {}, NOW + 60, NOW));
  assert.equal(read(COOKIES, value, "tracegate_oidc_t_1")?.state, "invalid");
  assert.equal(read(new SealedCookies(KEY, "other policy", true), value)?.state, "invalid");
  assert.equal(read(new SealedCookies(randomBytes(32), "policy", true), value)?.state, "invalid");
});

test("the same value is sealed differently each time, and reveals nothing", () => {
  const [first, second] = [1, 2].map(() => COOKIES.issue(NAME, { sub: "somebody" }, NOW + 60, NOW));
  assert.notEqual(first, second);
  assert.ok(!Buffer.from(sentBack(first ?? ""), "base64url").includes("somebody"));
});

test("scripts and other sites cannot read the cookies; with TLS, they are sent over TLS only", () => {
  const attributes = (cookie: string) => cookie.split("; ").slice(1);
  assert.deepEqual(attributes(COOKIES.issue(NAME, {}, NOW + 60, NOW)), [
    "Path=/",
    "HttpOnly",
    "SameSite=Lax",
    "Secure",
    "Max-Age=60",
  ]);
  const plain = new SealedCookies(KEY, "policy", false);
  assert.deepEqual(attributes(plain.remove(NAME)), ["Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=0"]);
});

test("a value that browsers would drop is rejected", () => {
  const issue = (length: number) => COOKIES.issue(NAME, "x".repeat(length), NOW + 60, NOW);
  assert.ok(issue(2700).length > 3600);
  assert.throws(
    () => issue(2900),
    (error: GatewayError) => {
      assert.ok(error instanceof GatewayError);
      assert.equal(error.status, 500);
      assert.equal(error.message, "oidc failure: claims and tokens are too large for cookies");
      return true;
    },
  );
});

test("the gateway's own cookies are removed from every cookie field; others stay unchanged", () => {
  const headers = [
    ...["cookie", "a=1; tracegate_oidc_s_1=x=y; b=tracegate_oidc_"],
    ...["accept", "text/html"],
    ...["cookie", "tracegate_oidc_t_1=z;tracegate_oidc_s_1=second"],
    ...["cookie", "c=3; __Host-tracegate_oidc_s_2=h"],
    ...["x-cookie", "tracegate_oidc_s_1=w"],
  ];
  assert.deepEqual(
    [...takeCookies(headers)],
    [
      ["tracegate_oidc_s_1", "x=y"],
      ["tracegate_oidc_t_1", "z"],
      ["__Host-tracegate_oidc_s_2", "h"],
    ],
  );
  assert.deepEqual(headers, [
    ...["cookie", "a=1; b=tracegate_oidc_"],
    ...["accept", "text/html"],
    ...["cookie", "c=3"],
    ...["x-cookie", "tracegate_oidc_s_1=w"],
  ]);
});
