import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { seconds } from "../../base/dates.ts";
import { type Renewal, revocationKey, SharedSessions, sessionMemory } from "./shared-sessions.ts";

function generation(): string {
  return randomBytes(12).toString("base64url");
}

function renewed(): Renewal {
  const session = { id: "i", generation: generation(), began: 1, claims: { sub: "jo", exp: 2 }, issued: 1, expires: 2 };
  return { state: "renewed", session };
}

/** Two threads of a process, as far as they share memory and messages. */
function twoThreads(): [SharedSessions, SharedSessions] {
  const memory = sessionMemory();
  const threads = [new SharedSessions(memory), new SharedSessions(memory)] as [SharedSessions, SharedSessions];
  for (const thread of threads) thread.listen();
  return threads;
}

test("a session is refreshed once in all threads, and each gets the result", async () => {
  const [one, two] = twoThreads();
  const id = generation();
  const outcome = renewed();
  const asked = Promise.withResolvers<Renewal>();
  let runs = 0;
  const run = () => {
    runs++;
    return asked.promise;
  };
  const all = [one.once(id, run), two.once(id, run), one.once(id, run), two.once(id, run)];
  assert.equal(two.refreshing(id), true);
  assert.equal(two.refreshing(generation()), false);
  asked.resolve(outcome);
  for (const each of await Promise.all(all)) assert.deepEqual(each, outcome);
  assert.equal(runs, 1);
  assert.deepEqual(await two.once(id, run), outcome);
  assert.deepEqual(two.renewal(id), outcome);
  assert.equal(runs, 1);
});

test("a thread that has not read the message yet does not refresh again", async () => {
  const [one, two] = twoThreads();
  const id = generation();
  const outcome = renewed();
  await one.once(id, async () => outcome);
  // The message is in the queue of the second thread, which reads it only after this.
  const renewal = two.once(id, () => assert.fail("refreshed twice"));
  assert.deepEqual(await renewal, outcome);
});

test("after a failure a session can be refreshed again when its time has come", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const [one] = twoThreads();
  const id = generation();
  const failure: Renewal = { state: "failed", why: "away", retryAt: seconds() + 5 };
  assert.deepEqual(await one.once(id, async () => failure), failure);
  assert.deepEqual(await one.once(id, () => assert.fail("too early")), failure);
  t.mock.timers.tick(5000);
  const outcome = renewed();
  assert.deepEqual(await one.once(id, async () => outcome), outcome);
});

test("all threads know a revocation, for sessions that began before, until its end", () => {
  const [one, two] = twoThreads();
  const key = revocationKey("https://id", "shop", "sub", "jo");
  assert.equal(one.isRevoked([key], 100, 1000), false);
  const now = seconds();
  assert.equal(one.revoke(key, now, now + 600), true);
  for (const thread of [one, two]) {
    assert.equal(thread.isRevoked([1n, key], now - 100), true);
    assert.equal(thread.isRevoked([key], now + 1), false, "a later login");
    assert.equal(thread.isRevoked([key], now - 100, now + 600), false, "after its end");
    assert.equal(thread.isRevoked([revocationKey("https://id", "shop", "sub", "jo2")], now - 100), false);
  }
});

test("revocations that are in force are never dropped for new ones; the names of parts are not ambiguous", () => {
  const [one] = twoThreads();
  const now = seconds();
  // All in one place of the table.
  const keys = Array.from({ length: 17 }, (_, i) => (BigInt(i + 1) << 20n) | 5n);
  const taken = keys.map((key) => one.revoke(key, now, now + 600));
  assert.deepEqual(taken, [...Array<boolean>(16).fill(true), false]);
  for (const key of keys.slice(0, 16)) assert.equal(one.isRevoked([key], now), true);
  assert.notEqual(revocationKey("a", "b,c"), revocationKey("a,b", "c"));
});
