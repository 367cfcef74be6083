import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { invokeProgram } from "../../cli/fixtures/invoke.ts";
import { tracegate } from "../commands.ts";

test("without a running gateway there is nothing to take over, and sockets of dead ones are removed", async (t) => {
  const runtime = mkdtempSync(join(tmpdir(), "take-over-launcher-"));
  t.after(() => rmSync(runtime, { recursive: true }));
  const folder = join(runtime, "tracegate");
  mkdirSync(folder, { mode: 0o700 });
  const server = createServer().listen(join(folder, "12.sock"));
  await once(server, "listening");
  // A server removes the file that it has made, but not under another name.
  renameSync(join(folder, "12.sock"), join(folder, "34.sock"));
  server.close();
  await once(server, "close");
  assert.deepEqual(readdirSync(folder), ["34.sock"]);

  const { code, stderr } = await invokeProgram(tracegate, ["--take-over"], "", { XDG_RUNTIME_DIR: runtime });
  assert.notEqual(code, 0);
  assert.match(stderr, /no gateway of this user runs here/);
  assert.deepEqual(readdirSync(folder), []);
});
