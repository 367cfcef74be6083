import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { seconds } from "../../base/dates.ts";
import { SealedCookies } from "./cookies.ts";
import { type SessionSettings, Sessions, type Tokens } from "./session.ts";

const KEY = randomBytes(32);

function sessionsOf(changes: Partial<SessionSettings> = {}): Sessions {
  const settings = {
    keepsAccessToken: false,
    keepsIdToken: false,
    client: ["https://id", "shop"],
    ...changes,
  } as const;
  return new Sessions(new SealedCookies(KEY, "policy", true), "1", settings);
}

function tokensOf(changes: Partial<Tokens> = {}, life = 60) {
  const claims = { sub: "jo", exp: seconds() + life };
  return { id: { token: "id", claims }, access: "access", ...changes };
}

/** What the browser has after these Set-Cookie values. */
function keep(cookies: Map<string, string>, changes: readonly string[]): Map<string, string> {
  for (const change of changes) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(change) ?? [];
    if (change.endsWith("; Max-Age=0")) cookies.delete(name);
    else cookies.set(name, value);
  }
  return cookies;
}

/** The cookies of a new session. */
function sent(sessions: Sessions, tokens = tokensOf()): Map<string, string> {
  return keep(new Map(), sessions.issue(sessions.begin(tokens), new Map()));
}

function clock(t: TestContext): void {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
}

test("a remembered session still expires", (t) => {
  clock(t);
  const sessions = sessionsOf();
  const cookies = sent(sessions);
  assert.equal(sessions.read(cookies)?.state, "valid");
  t.mock.timers.tick(59_000);
  assert.equal(sessions.read(cookies)?.state, "valid");
  t.mock.timers.tick(2000);
  assert.deepEqual(sessions.read(cookies), { state: "expired" });
  assert.deepEqual(sessions.read(cookies), { state: "expired" });
});

test("many sessions are kept apart", () => {
  const sessions = sessionsOf();
  const all = Array.from({ length: 600 }, (_, i) => {
    const claims = { sub: `user-${i}`, exp: seconds() + 60 };
    return sent(sessions, { ...tokensOf(), id: { token: "id", claims } });
  });
  for (let round = 0; round < 2; round++)
    for (const [i, cookies] of all.entries()) {
      const found = sessions.read(cookies);
      assert.equal(found?.state === "valid" && found.session.claims.sub, `user-${i}`);
    }
});

test("a session ends with the id token, or after an hour if it can be refreshed, or when its lifetime says so", () => {
  const now = seconds();
  for (const [settings, tokens, life] of [
    [{}, tokensOf(), 60],
    [{}, tokensOf({}, 7200), 3600],
    [{}, tokensOf({ refresh: "r" }), 3600],
    [{ lifetime: 30 }, tokensOf({ refresh: "r" }), 30],
    [{ lifetime: 86_400 }, tokensOf(), 86_400],
  ] as const) {
    const sessions = sessionsOf(settings);
    const ends = sessions.ends(sessions.begin(tokens, now));
    assert.ok(Math.abs(ends - now - life) <= 1, `${life}: ${ends - now}`);
  }
});

test("an unused session ends, and one in use does not; requests seldom renew the cookie", (t) => {
  clock(t);
  const sessions = sessionsOf({ lifetime: 3600, idleTimeout: 600 });
  const cookies = sent(sessions);
  for (let i = 0; i < 5; i++) {
    t.mock.timers.tick(500_000);
    const found = sessions.read(cookies);
    assert.ok(found?.state === "valid");
    keep(cookies, sessions.touch(found.session, cookies));
    assert.deepEqual(sessions.touch(found.session, cookies), []);
  }
  t.mock.timers.tick(601_000);
  assert.deepEqual(sessions.read(cookies), { state: "idle" });
});

test("the cookie of the last use counts for its own session only", () => {
  const sessions = sessionsOf({ lifetime: 3600, idleTimeout: 600 });
  const [first, second] = [sent(sessions), sent(sessions)];
  const mixed = new Map(first);
  for (const [name, value] of second) if (name.includes("_u_")) mixed.set(name, value);
  assert.deepEqual(sessions.read(mixed), { state: "idle" });
});

test("large tokens take several cookies; parts that are left over are removed, and missing or exchanged ones are noticed", () => {
  const sessions = sessionsOf({ keepsAccessToken: true });
  const large = (letter: string) => tokensOf({ access: letter.repeat(9000), refresh: "r" });
  const cookies = sent(sessions, large("a"));
  assert.equal(cookies.size, 4);
  for (const [name, value] of cookies) assert.ok(name.length + value.length + 80 <= 4096, `${name}: ${value.length}`);
  const found = sessions.read(cookies);
  assert.ok(found?.state === "valid");
  assert.equal(found.session.access, "a".repeat(9000));
  const others = sent(sessions, large("b"));
  for (const name of cookies.keys()) {
    const without = new Map(cookies);
    without.delete(name);
    assert.notEqual(sessions.read(without)?.state, "valid", name);
    const exchanged = new Map(cookies).set(name, others.get(name) ?? "");
    assert.equal(sessions.read(exchanged)?.state, "invalid", name);
  }
  const smaller = sessions.renew(found.session, { access: "c" });
  keep(cookies, sessions.issue(smaller, cookies));
  assert.equal(cookies.size, 1);
  const again = sessions.read(cookies);
  assert.equal(again?.state === "valid" && again.session.access, "c");
  assert.equal(keep(cookies, sessions.remove(cookies)).size, 0);
});

test("tokens are refreshed in the last part of their life", () => {
  const sessions = sessionsOf();
  const session = sessions.begin(tokensOf({ refresh: "r", expiresIn: 1000 }), 10_000);
  assert.equal(sessions.due(session, 10_930), false);
  assert.equal(sessions.due(session, 10_940), true);
  assert.equal(sessions.lapsed(session, 10_999), false);
  assert.equal(sessions.lapsed(session, 11_000), true);
  const short = sessions.begin(tokensOf({ refresh: "r", expiresIn: 10 }), 10_000);
  assert.equal(sessions.due(short, 10_007), false);
  assert.equal(sessions.due(short, 10_009), true);
  const without = sessions.begin(tokensOf({ expiresIn: 10 }), 10_000);
  assert.equal(sessions.due(without, 10_009), false);
});
