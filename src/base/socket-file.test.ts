import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { claimSocketFile } from "./socket-file.ts";

test("two processes can remove the file of a killed one at the same time; other files and served sockets stay", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "socket-file-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const dead = join(folder, "dead");
  const killed = createServer().listen(`${dead}.bound`);
  await once(killed, "listening");
  renameSync(`${dead}.bound`, dead);
  killed.close();
  await once(killed, "close");
  const file = join(folder, "file");
  writeFileSync(file, "");
  const served = join(folder, "served");
  const server = createServer((socket) => socket.destroy()).listen(served);
  t.after(() => server.close());
  await once(server, "listening");

  const claims = await Promise.all([dead, dead, file, served].map((path) => claimSocketFile(path)));
  assert.deepEqual(claims, [undefined, undefined, "other file", "in use"]);
  assert.deepEqual([dead, file, served].map(existsSync), [false, true, true]);
});
