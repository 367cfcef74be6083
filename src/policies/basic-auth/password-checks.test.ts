import assert from "node:assert/strict";
import { test } from "node:test";
import { hashSync } from "bcryptjs";
import { PasswordChecks } from "./password-checks.ts";

const HASHED = hashSync("secret", 10);

test("right and wrong passwords; a hash that cannot be read fails only its own check", async () => {
  const checks = new PasswordChecks();
  const results = [checks.check("a", HASHED, "secret"), checks.check("a", HASHED, "other")];
  assert.deepEqual(await Promise.all(results), ["right", "wrong"]);
  // It throws, which ends the thread: another one takes its place.
  const broken = checks.check("a", "no hash", "secret");
  const after = checks.check("a", HASHED, "secret");
  assert.deepEqual(await Promise.all([broken, after]), ["busy", "right"]);
});

test("this thread is not blocked while passwords are checked", async () => {
  const checks = new PasswordChecks();
  await checks.check("a", HASHED, "first");
  const done: string[] = [];
  const check = checks.check("a", HASHED, "other").then(() => done.push("check"));
  const turns = new Promise<void>((resolve) => {
    let left = 10;
    const turn = (): unknown => (left-- > 0 ? setImmediate(turn) : resolve(void done.push("turns")));
    turn();
  });
  await Promise.all([check, turns]);
  assert.deepEqual(done, ["turns", "check"]);
});

test("beyond the limit, only the client with the most passwords is turned away", async () => {
  const checks = new PasswordChecks(3);
  const flood = Array.from({ length: 6 }, (_, i) => checks.check("flood", HASHED, `wrong${i}`));
  const other = checks.check("other", HASHED, "secret");
  const results = await Promise.all(flood);
  // One is verified at once and three may wait, of which one was removed for the other client.
  assert.deepEqual(results, ["wrong", "wrong", "wrong", "busy", "busy", "busy"]);
  assert.equal(await other, "right");
});
