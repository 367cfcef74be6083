import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LockFiles } from "./lock-files.ts";

const folder = (): { path: string } & Disposable => {
  const made = mkdtempSync(join(tmpdir(), "tracegate-locks-"));
  return { path: join(made, "a.lock"), [Symbol.dispose]: () => rmSync(made, { recursive: true }) };
};

test("one of several processes gets a lock, and the next one after its release", async () => {
  using place = folder();
  const processes = Array.from({ length: 8 }, () => new LockFiles());
  const taken = await Promise.all(processes.map((each) => each.take(place.path)));
  const [held, ...others] = taken.filter((each) => each !== undefined);
  assert.ok(held !== undefined && others.length === 0);
  await held.release();
  const next = await processes[0]?.take(place.path);
  assert.ok(await next?.isHeld());
  await next?.release();
});

test("exactly one process takes over an abandoned lock, however the machines' clocks differ", async () => {
  using place = folder();
  writeFileSync(place.path, "a process that is gone");
  const ahead = Date.now() / 1000 + 3600;
  utimesSync(place.path, ahead, ahead);
  let now = 0;
  const processes = Array.from({ length: 8 }, () => new LockFiles(() => now));
  const all = async () => (await Promise.all(processes.map((each) => each.take(place.path)))).filter(Boolean);
  assert.equal((await all()).length, 0);
  now = 29_000;
  assert.equal((await all()).length, 0);
  // Its holder is alive after all.
  utimesSync(place.path, ahead + 5, ahead + 5);
  now = 31_000;
  assert.equal((await all()).length, 0);
  now = 61_000;
  const taken = await all();
  assert.equal(taken.length, 1);
  await taken[0]?.release();
});
