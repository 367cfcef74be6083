import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import { AdminClient } from "./client.ts";

const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("the client reads and changes state, and reports errors", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, any, plane.log, unguarded());
  const url = `http://${server.addresses[0]}`;
  const client = new AdminClient(`${url}/`);
  try {
    assert.equal(await client.setLogging("debug,proxy=warn"), "current log level is debug,proxy=warn\n");
    assert.equal(await client.setLogging("", { reset: true }), "current log level is info\n");
    await assert.rejects(client.setLogging("loud"), {
      kind: "status",
      status: 400,
      body: /^Invalid level provided: loud\nusage/,
    });
    assert.equal(Buffer.from(await client.cpuProfile(1, { frequency: 50 })).toString(), "cpu");
    assert.equal(Buffer.from(await client.heapProfile()).toString(), "heap");
    assert.equal(plane.profiles[0]?.hz, 50);
    assert.deepEqual(await client.tasks(), { admin: [], workload: [] });
    assert.ok(await client.memory());
    assert.equal(await client.quit(), "shutdown now\n");
    await assert.rejects(client.memory({ signal: AbortSignal.abort() }), { kind: "aborted" });
  } finally {
    await server.close();
  }
  await assert.rejects(client.configDump(), {
    kind: "unreachable",
    message: `no admin server reached at ${url}/: connection refused; is a gateway running with its admin server there?`,
  });
  await assert.rejects(new AdminClient("localhost:15000").configDump(), {
    kind: "unreachable",
    message: /expected http:/,
  });
});
