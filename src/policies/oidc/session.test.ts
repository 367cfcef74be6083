import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { SealedCookies, seconds } from "./cookies.ts";
import { Sessions } from "./session.ts";

const KEY = randomBytes(32);

function sent(setCookie: string): Map<string, string> {
  const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(setCookie) ?? [];
  return new Map([[name, value]]);
}

test("a remembered session still expires", (t) => {
  const sessions = new Sessions(new SealedCookies(KEY, "policy", true), "1");
  const cookies = sent(sessions.issue({ sub: "jo", exp: seconds() + 60 }));
  assert.equal(sessions.read(cookies)?.state, "valid");
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() + 59_000 });
  assert.equal(sessions.read(cookies)?.state, "valid");
  t.mock.timers.tick(2000);
  assert.deepEqual(sessions.read(cookies), { state: "expired" });
  assert.deepEqual(sessions.read(cookies), { state: "expired" });
});

test("many sessions are kept apart", () => {
  const sessions = new Sessions(new SealedCookies(KEY, "policy", true), "1");
  const all = Array.from({ length: 600 }, (_, i) => sent(sessions.issue({ sub: `user-${i}`, exp: seconds() + 60 })));
  for (let round = 0; round < 2; round++)
    for (const [i, cookies] of all.entries()) {
      const opened = sessions.read(cookies);
      assert.equal(opened?.state === "valid" && (opened.value as { sub: string }).sub, `user-${i}`);
    }
});
