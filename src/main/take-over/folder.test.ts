import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ownSocketPath, socketPaths } from "./folder.ts";

test("gateways are looked for only in a folder that no other user could have put a socket into", (t) => {
  const runtime = mkdtempSync(join(tmpdir(), "take-over-folder-"));
  t.after(() => rmSync(runtime, { recursive: true }));
  const folder = join(runtime, "tracegate");
  const env = { XDG_RUNTIME_DIR: runtime };
  mkdirSync(folder);
  writeFileSync(join(folder, "12.sock"), "");

  chmodSync(folder, 0o777);
  assert.deepEqual([...socketPaths(env)], []);

  assert.equal(ownSocketPath(env), join(folder, `${process.pid}.sock`));
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.deepEqual([...socketPaths(env)], [[12, join(folder, "12.sock")]]);

  const { uid } = statSync(folder);
  t.mock.method(process as { getuid(): number }, "getuid", () => uid + 1);
  assert.deepEqual([...socketPaths(env)], []);
  assert.throws(() => ownSocketPath(env), /belongs to another user/);
});
