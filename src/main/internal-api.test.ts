import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { test } from "node:test";
import type { AdminPlane } from "../admin/plane/plane.ts";
import type { Logger } from "../base/log.ts";
import { OwnSockets } from "../base/own-sockets.ts";
import type { PackedIr } from "../ir/packed-ir.ts";
import { InternalApi } from "./internal-api.ts";

/** A folder in which not even root can create a file. */
const READ_ONLY = "/proc/none";
const configuration = { internal: true } as PackedIr;
const PLANE = { permits: { browserOrigins: [] as readonly string[] } } as AdminPlane;

test("if a folder cannot be written to, as in many containers, the socket is in the next, and is removed at the end", async () => {
  const api = new InternalApi([READ_ONLY, tmpdir()]);
  assert.ok(api.socket.startsWith(tmpdir()));
  await api.prepare(configuration, PLANE, {} as Logger, new OwnSockets());
  assert.ok(existsSync(api.socket));
  await api.close();
  assert.ok(!existsSync(dirname(api.socket)));
});

test("without a writable folder, the error says what to mount", async () => {
  const api = new InternalApi([READ_ONLY, "/sys/none"]);
  await assert.rejects(
    api.prepare(configuration, {} as AdminPlane, {} as Logger, new OwnSockets()),
    /^Error: internal backends need a socket, and neither \/proc\/none nor \/sys\/none can be written to; mount a folder/,
  );
});
