import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import { AdminClient } from "../client/client.ts";
import { startReadinessServer } from "../readiness-server.ts";
import { startStatsServer } from "../stats-server.ts";

const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("localhost means both loopback addresses on one port", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, { type: "localhost", port: 0 }, plane.log, unguarded());
  try {
    assert.match(server.addresses[0] ?? "", /^127\.0\.0\.1:\d+$/);
    for (const address of server.addresses)
      assert.equal((await new AdminClient(`http://${address}`).configStatus()).generation, 3);
    const ports = new Set(server.addresses.map((address) => address.slice(address.lastIndexOf(":"))));
    assert.equal(ports.size, 1);
  } finally {
    await server.close();
  }
});

test("off listens nowhere", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, { type: "off" }, plane.log, unguarded());
  assert.deepEqual(server.addresses, []);
  await server.close();
});

test("a port in use is an error that names the server, the port and the setting", async () => {
  const plane = new TestPlane();
  const first = await startStatsServer(plane, any, plane.log, unguarded());
  try {
    const port = Number(first.addresses[0]?.split(":")[1]);
    const used = new RegExp(`^readiness server: 127\\.0\\.0\\.1:${port} is in use; .* change readinessAddr$`);
    await assert.rejects(startReadinessServer(plane, { ...any, port }, plane.log, unguarded()), { message: used });
    await assert.rejects(
      startAdminServer(plane, { type: "localhost", port }, plane.log, unguarded()),
      /admin server: .* is in use/,
    );
  } finally {
    await first.close();
  }
});

test("a Unix socket is private, serves the client, and is removed with the server", async (t) => {
  const plane = new TestPlane();
  const folder = await mkdtemp(join(tmpdir(), "tracegate-admin-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "admin.sock");
  const server = await startAdminServer(plane, { type: "unix", path }, plane.log, unguarded());
  assert.deepEqual(server.addresses, [`unix:${path}`]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const client = new AdminClient({ unix: path });
  assert.deepEqual(await client.configDump(), plane.dump);
  await assert.rejects(
    startAdminServer(plane, { type: "unix", path }, plane.log, unguarded()),
    /another process listens on/,
  );
  assert.equal((await client.configStatus()).generation, 3, "the first server was left alone");
  await server.close();
  await assert.rejects(stat(path), { code: "ENOENT" });
  await assert.rejects(client.configDump(), {
    kind: "unreachable",
    message: new RegExp(`^no admin server reached at unix:${path}: no such socket`),
  });
});

test("a stale socket file is replaced, any other file is left alone", async (t) => {
  const plane = new TestPlane();
  const folder = await mkdtemp(join(tmpdir(), "tracegate-admin-"));
  t.after(() => rm(folder, { recursive: true }));
  const stale = join(folder, "stale.sock");
  // A process that dies leaves its socket file behind.
  const script = join(folder, "die.mjs");
  await writeFile(
    script,
    `import { createServer } from "node:net"; createServer().listen(process.argv[2], () => process.kill(process.pid, "SIGKILL"));`,
  );
  await once(fork(script, [stale]), "exit");
  assert.ok((await stat(stale)).isSocket());
  const server = await startAdminServer(plane, { type: "unix", path: stale }, plane.log, unguarded());
  assert.match(await new AdminClient({ unix: stale }).logging(), /^current log level is info/);
  await server.close();
  const file = join(folder, "precious");
  await writeFile(file, "data");
  await assert.rejects(
    startAdminServer(plane, { type: "unix", path: file }, plane.log, unguarded()),
    /exists and is not a socket; remove it or change adminAddr/,
  );
});
