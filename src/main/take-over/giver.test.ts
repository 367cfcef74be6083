import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import { OwnSockets } from "../../base/own-sockets.ts";
import { ownSocketPath } from "./folder.ts";
import { TakeOverSocket } from "./giver.ts";

test("the process of a command that has gone away before it could be started is stopped", async (t) => {
  const runtime = mkdtempSync(join(tmpdir(), "take-over-giver-"));
  t.after(() => rmSync(runtime, { recursive: true }));
  const env = { XDG_RUNTIME_DIR: runtime };
  const failed = Promise.withResolvers<string>();
  const log = new LogOutput(parseLogFilter("error"), "text", failed.resolve).logger("gateway");
  const gateway = {
    draining: false,
    ownSockets: new OwnSockets(),
    async withSockets<T>(use: (sockets: readonly never[]) => Promise<T>): Promise<T> {
      client.destroy();
      await once(client, "close");
      // The other side learns of it.
      for (let i = 0; i < 20; i++) await turn();
      return use([]);
    },
  };
  const socket = await TakeOverSocket.open(gateway, log, env, () => failed.resolve("taken over"));
  t.after(() => socket.close());
  const client = connect(ownSocketPath(env));
  const serve = "process.send({ type: 'serving' }); setTimeout(() => {}, 5_000)";
  client.write(`${JSON.stringify({ command: [process.execPath, "-e", serve], folder: runtime, env: {} })}\n`);
  assert.match(await failed.promise, /ended by SIGKILL/);
});
