import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { SharedLook } from "./shared-look.ts";

test("whoever asks during a look shares the next one", async () => {
  let looks = 0;
  const shared = new SharedLook(async () => {
    const look = ++looks;
    await sleep(1);
    return look;
  });
  const first = shared.next();
  assert.deepEqual(await Promise.all([first, shared.next(), shared.next()]), [1, 2, 2]);
});

test("looks that follow each other leave the system twice the time that they take", async () => {
  const looks: { begin: number; took: number }[] = [];
  const shared = new SharedLook(async () => {
    const begin = performance.now();
    await sleep(5);
    looks.push({ begin, took: performance.now() - begin });
  });
  for (let i = 0; i < 3; i++) await shared.next();
  // Timers may be a millisecond early.
  for (const [i, { begin, took }] of looks.slice(0, 2).entries())
    assert.ok((looks[i + 1]?.begin ?? 0) >= begin + 3 * took - 2, JSON.stringify(looks));
});

test("a look that fails fails for those who shared it only", async () => {
  let looks = 0;
  const shared = new SharedLook(async () => {
    if (++looks === 1) throw new Error("no file descriptors left");
    return looks;
  });
  const first = shared.next();
  const second = shared.next();
  await assert.rejects(first, /no file descriptors left/);
  assert.equal(await second, 2);
});
