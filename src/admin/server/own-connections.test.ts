import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import { ask } from "../../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { LogOutput } from "../../base/log.ts";
import { parseLogFilter } from "../../base/log-filter.ts";
import { OwnSockets } from "../../base/own-sockets.ts";
import { FIRST_HOP } from "../../http/loop.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import { startReadinessServer } from "../readiness-server.ts";
import { startStatsServer } from "../stats-server.ts";

const run = promisify(execFile);

/** Sends a request from another process, with tools that every Linux has. */
async function askFromOutside(port: string): Promise<string> {
  const request = String.raw`GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
  const script = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf '${request}' >&3; head -1 <&3`;
  return (await run("bash", ["-c", script], { timeout: 10_000 })).stdout;
}

const SERVERS = { admin: startAdminServer, stats: startStatsServer, readiness: startReadinessServer } as const;

for (const [name, start] of Object.entries(SERVERS))
  for (const host of ["127.0.0.1", "::1", "::"])
    test(`${name} at ${host}: connections of this process are closed unread, those of others are served`, async () => {
      const lines: string[] = [];
      const log = new LogOutput(parseLogFilter("info"), "json", (line) => lines.push(line)).logger("admin");
      const own = new OwnSockets();
      own.callersOf = (port) => [`default/route (localhost:${port})`];
      const server = await start(new TestPlane(), { type: "socket", host, port: 0 }, log, own);
      try {
        const port = server.addresses[0]?.split(":").at(-1) ?? "";
        const ways = host === "::" ? ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"] : [host];
        for (const way of ways) {
          const socket = connect(Number(port), way);
          let received = "";
          socket.on("data", (bytes: Buffer) => {
            received += bytes.toString();
          });
          socket.on("error", () => {});
          socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
          await once(socket, "close");
          assert.equal(received, "", way);
        }
        assert.equal(lines.length, ways.length);
        for (const line of lines) {
          const { level, server: at, from } = JSON.parse(line) as Record<string, unknown>;
          assert.deepEqual([level, at, from], ["warn", name, `default/route (localhost:${port})`]);
        }
        if (host !== "::1") assert.match(await askFromOutside(port), /^HTTP\/1\.1 \d{3}/);
        assert.equal(lines.length, ways.length);
      } finally {
        await server.close();
      }
    });

test("a request whose connection of this process has closed, or is reset, before it is examined is not served, and logged", async () => {
  const plane = new TestPlane();
  const lines: string[] = [];
  const log = new LogOutput(parseLogFilter("info"), "json", (line) => lines.push(line)).logger("admin");
  const own = new OwnSockets();
  own.callersOf = () => ["default/route"];
  const server = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, log, own);
  try {
    const port = Number(server.addresses[0]?.split(":").at(-1));
    const ends = [(socket: Socket) => socket.destroy(), (socket: Socket) => socket.resetAndDestroy()];
    for (const end of [...ends, ...ends]) {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.write("POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\n\r\n");
      end(socket);
    }
    // Later connections are examined later.
    assert.match(await askFromOutside(String(port)), /^HTTP/);
    assert.equal(plane.shutdowns, 0);
    assert.equal(lines.length, 4);
    for (const line of lines) assert.equal((JSON.parse(line) as { from: string }).from, "default/route");
    // Where nothing of the configuration leads, others may look whether the port is open.
    own.callersOf = () => [];
    const other = connect(port, "127.0.0.1");
    await once(other, "connect");
    other.destroy();
    assert.match(await askFromOutside(String(port)), /^HTTP/);
    assert.equal(lines.length, 4);
  } finally {
    await server.close();
  }
});

test("a request of this process that returns through another machine is rejected", async () => {
  const plane = new TestPlane();
  const server = await startStatsServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log, unguarded());
  try {
    const [address] = server.addresses;
    const asked = (loop: string): ReturnType<typeof ask> =>
      ask(address, "GET", "/metrics", ["host: localhost", `cdn-loop: ${loop}`]);
    assert.equal((await asked(FIRST_HOP)).status, 508);
    assert.equal((await asked(`a.example, ${FIRST_HOP}`)).status, 508);
    // Of another gateway.
    assert.equal((await asked("tracegate; by=0123456789abcdef; hops=1")).status, 200);
  } finally {
    await server.close();
  }
});
