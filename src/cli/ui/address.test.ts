import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addressOf } from "./address.ts";

test("the same proxies have the same address, others another one, and other users find neither", async (t) => {
  const homes = await Promise.all(["a", "b"].map((name) => mkdtemp(join(tmpdir(), `ui-${name}-`))));
  t.after(() => Promise.all(homes.map((home) => rm(home, { recursive: true }))));
  const [HOME = "", other = ""] = homes;
  const first = await addressOf("gateway/web", { HOME });
  assert.deepEqual(await addressOf("gateway/web", { HOME }), first);
  assert.ok(first.port >= 20_000 && first.port < 30_000);
  assert.match(first.secret, /^[\w-]{27}$/);
  const others = await Promise.all([addressOf("gateway/api", { HOME }), addressOf("gateway/web", { HOME: other })]);
  for (const { secret } of others) assert.notEqual(secret, first.secret);
  const { mode } = await stat(join(HOME, ".local/state/tracegate/ui-key"));
  assert.equal(mode & 0o777, 0o600);
});

test("if the key cannot be stored, or its file holds something else, each run has an address of its own", async (t) => {
  const home = await mkdtemp(join(tmpdir(), "ui-"));
  t.after(() => rm(home, { recursive: true }));
  const env = { XDG_STATE_HOME: home };
  await addressOf("gateway/web", env);
  const file = join(home, "tracegate/ui-key");
  await writeFile(file, "short");
  for (const each of [{}, env, { HOME: file }]) {
    const [one, two] = [await addressOf("gateway/web", each), await addressOf("gateway/web", each)];
    assert.notEqual(one.secret, two.secret);
  }
  assert.equal(await readFile(file, "utf8"), "short");
});
