import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpResponse } from "../../http/message/message.ts";
import { contextOf, creatorOf, DEPS, RecordedTrace } from "../testing/context.ts";
import { sessionPersistence } from "./index.ts";
import { schema } from "./schema.ts";
import { sessionKey } from "./session-key.ts";

interface Exchange {
  /** Fields that the response has been given. */
  readonly fields: Readonly<Record<string, string>>;
  /** The endpoint that the policy has preferred. */
  readonly preferred: string | undefined;
  readonly events: readonly unknown[];
}

interface Sent {
  readonly headers?: readonly string[];
  readonly endpoint?: string;
  readonly scheme?: "http" | "https";
  readonly matchedPrefix?: string;
}

/** A policy as a route of this identity has it. */
function policyOf(config: object, identity = "route a", key = DEPS.sessionKey) {
  const policy = creatorOf(sessionPersistence)(schema.parse(config), { ...DEPS, identity, sessionKey: key });
  return ({
    headers = [],
    endpoint = "10.0.0.1:80",
    scheme = "http",
    matchedPrefix = "/shop",
  }: Sent = {}): Exchange => {
    const trace = new RecordedTrace();
    const context = contextOf({ headers: [...headers], scheme }, { trace, endpoint, matchedPrefix });
    policy.onRequest?.(context);
    const response: HttpResponse = { status: 200, headers: [] };
    policy.onResponse?.(context, response);
    const fields: Record<string, string> = {};
    for (let i = 0; i < response.headers.length; i += 2)
      fields[response.headers[i] as string] = response.headers[i + 1] as string;
    return { fields, preferred: context.session?.endpoint, events: trace.events };
  };
}

const cookieOf = ({ fields }: Exchange): string => (fields["set-cookie"] ?? "").split(";", 1)[0] as string;

test("the first response names its endpoint in a cookie; later requests prefer it and need no new one", () => {
  const send = policyOf({});
  const first = send({ scheme: "https" });
  assert.deepEqual(first.events, [
    { kind: "session_persistence", reason: "the request has no session" },
    { kind: "session_persistence", details: { issued: "10.0.0.1:80" } },
  ]);
  const [pair = "", ...attributes] = (first.fields["set-cookie"] ?? "").split("; ");
  assert.match(pair, /^tracegate_session_[0-9a-f]{8}=[\w-]+$/);
  assert.deepEqual(attributes, ["Path=/shop", "HttpOnly", "SameSite=Strict", "Secure"]);
  assert.ok(!Buffer.from(pair.split("=")[1] ?? "", "base64url").includes("10.0.0.1"), "the address is not readable");
  const second = send({ headers: ["cookie", `a=b; ${pair}; c=d`] });
  assert.equal(second.preferred, "10.0.0.1:80");
  assert.deepEqual(second.fields, {});
  assert.deepEqual(second.events, [{ kind: "session_persistence", details: { endpoint: "10.0.0.1:80" } }]);
});

test("when the endpoint is gone, the response has a session for the new one", () => {
  const send = policyOf({});
  const cookie = cookieOf(send());
  const moved = send({ headers: ["cookie", cookie], endpoint: "10.0.0.2:80" });
  assert.equal(moved.preferred, undefined);
  assert.equal(send({ headers: ["cookie", cookieOf(moved)], endpoint: "10.0.0.2:80" }).preferred, "10.0.0.2:80");
});

test("a session that was changed, or belongs to another route or key, is ignored", () => {
  const send = policyOf({ sessionName: "s" });
  const cookie = cookieOf(send());
  const changed = cookie.slice(0, -3) + (cookie.endsWith("AAA") ? "BBB" : "AAA");
  for (const text of [changed, "s=", "s=x", `s=${"A".repeat(5000)}`, 's="', "s=%00"]) {
    const { preferred, fields } = send({ headers: ["cookie", text] });
    assert.equal(preferred, undefined, text);
    assert.match(fields["set-cookie"] ?? "", /^s=/);
  }
  const others = [
    policyOf({ sessionName: "s" }, "route b"),
    policyOf({ sessionName: "s" }, "route a", sessionKey(undefined)),
  ];
  for (const other of others) assert.equal(other({ headers: ["cookie", cookie] }).preferred, undefined);
});

test("cookies of two routes have different names", () => {
  const [a, b] = [cookieOf(policyOf({}, "route a")()), cookieOf(policyOf({}, "route b")())];
  assert.notEqual(a.split("=")[0], b.split("=")[0]);
});

test("replicas with the same secret read each other's sessions", () => {
  const secret = new Uint8Array(32).fill(7);
  const [one, two] = [sessionKey(secret), sessionKey(secret)].map((key) => policyOf({}, "route a", key));
  const cookie = cookieOf(one?.() as Exchange);
  assert.equal(two?.({ headers: ["cookie", cookie] }).preferred, "10.0.0.1:80");
  assert.notDeepEqual(sessionKey(undefined), sessionKey(undefined));
});

test("a header carries the session if configured", () => {
  const send = policyOf({ type: "Header", sessionName: "X-Session" });
  const { fields, events } = send();
  assert.deepEqual(Object.keys(fields), ["x-session"]);
  assert.ok(
    events.some((event) => (event as { hide?: string; name?: string }).name === "x-session"),
    "traces hide it",
  );
  assert.equal(send({ headers: ["x-session", fields["x-session"] ?? ""] }).preferred, "10.0.0.1:80");
  assert.deepEqual(Object.keys(policyOf({ type: "Header" })().fields), ["x-tracegate-session"]);
});

test("a session ends after its absolute timeout, even if it is used, and after its idle timeout without use", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000_000_000 });
  const send = policyOf({ absoluteTimeout: "100s", idleTimeout: "40s", cookieConfig: { lifetimeType: "Permanent" } });
  let { fields } = send();
  assert.match(fields["set-cookie"] ?? "", /; Max-Age=100$/);
  for (const left of [70, 40, 10]) {
    t.mock.timers.tick(30_000);
    const used = send({ headers: ["cookie", cookieOf({ fields } as Exchange)] });
    assert.equal(used.preferred, "10.0.0.1:80", `${left} s before the end`);
    assert.match(used.fields["set-cookie"] ?? "", new RegExp(`; Max-Age=${left}$`), "renewed for the rest");
    ({ fields } = used);
  }
  t.mock.timers.tick(10_000);
  assert.equal(send({ headers: ["cookie", cookieOf({ fields } as Exchange)] }).preferred, undefined, "absolute");
  const cookie = cookieOf(send());
  t.mock.timers.tick(40_000);
  const { preferred, events } = send({ headers: ["cookie", cookie] });
  assert.equal(preferred, undefined, "idle");
  assert.deepEqual(events[0], { kind: "session_persistence", reason: "the session has expired", severity: "warn" });
});

test("a shortened limit applies to existing sessions", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000_000_000 });
  const cookie = cookieOf(policyOf({})());
  t.mock.timers.tick(60_000);
  assert.equal(policyOf({ absoluteTimeout: "1m" })({ headers: ["cookie", cookie] }).preferred, undefined);
  assert.equal(policyOf({ absoluteTimeout: "2m" })({ headers: ["cookie", cookie] }).preferred, "10.0.0.1:80");
});

test("for a path that a cookie cannot contain, the cookie's path is the root", () => {
  assert.match(policyOf({})({ matchedPrefix: "/a;b" }).fields["set-cookie"] ?? "", /; Path=\/;/);
});

test("a cookie whose name begins with __Host- has the root as its path, as browsers require", () => {
  const send = policyOf({ sessionName: "__Host-s" });
  assert.match(send({ scheme: "https" }).fields["set-cookie"] ?? "", /^__Host-s=.*; Path=\/; .*; Secure$/);
});
