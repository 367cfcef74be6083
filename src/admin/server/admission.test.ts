import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";
import { AdminClient } from "../client/client.ts";
import { startReadinessServer } from "../readiness-server.ts";
import { startStatsServer } from "../stats-server.ts";
import type { RunningServer } from "./http-server.ts";

/** More than all connections that a server allows. */
const CROWD = 200;
const any = { type: "socket", host: "0.0.0.0", port: 0 } as const;

suite("silent connections", () => {
  const plane = new TestPlane();
  const servers: RunningServer[] = [];
  const open: Socket[] = [];
  const paths = ["/healthz/ready", "/metrics", "/config_dump"];

  before(async () => {
    servers.push(
      await startReadinessServer(plane, any, plane.log, unguarded()),
      await startStatsServer(plane, any, plane.log, unguarded()),
      await startAdminServer(plane, any, plane.log, unguarded()),
    );
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await Promise.all(servers.map((server) => server.close()));
  });

  /** Opens a connection that has sent `bytes` and nothing else. */
  async function silent(port: number, from: string, bytes = ""): Promise<Socket> {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from });
    open.push(socket);
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    if (bytes !== "") socket.write(bytes);
    return socket;
  }

  async function crowd(port: number, from: string, bytes?: string): Promise<void> {
    for (let i = 0; i < CROWD; i++) await silent(port, from, bytes);
  }

  async function answers(index: number): Promise<void> {
    const { status } = parseResponse(await exchangeRaw(addressOf(index), head("GET", paths[index] ?? "")));
    assert.equal(status, 200, paths[index]);
  }

  function addressOf(index: number): string {
    return `127.0.0.1:${portOf(index)}`;
  }

  function portOf(index: number): number {
    return Number(servers[index]?.addresses[0]?.split(":").at(-1));
  }

  for (const [index, path] of paths.entries())
    for (const bytes of ["", "GET / HTTP/1.1\r\n", "PROXY TCP4 192.0.2.1 "])
      test(`${path} responds beside ${CROWD} connections that have sent ${JSON.stringify(bytes)}`, async () => {
        await crowd(portOf(index), "127.0.0.1", bytes);
        await answers(index);
      });

  test("new connections replace the oldest silent ones of the same address, not those of other addresses", async () => {
    const port = portOf(1);
    const first = await silent(port, "127.0.0.2");
    const other = await silent(port, "127.0.0.3");
    const firstClosed = once(first, "close");
    await crowd(port, "127.0.0.2");
    await firstClosed;
    let text = "";
    other.on("data", (chunk) => {
      text += String(chunk);
    });
    other.write(head("GET", "/metrics"));
    await once(other, "close");
    assert.equal(parseResponse(text).status, 200);
  });

  test("a trace continues beside many connections, and a connection is silent again after its response", async () => {
    const port = portOf(2);
    const trace = new AdminClient(`http://127.0.0.1:${port}`).trace();
    await trace.opened;
    const kept = await silent(port, "127.0.0.1", "GET /config/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(kept, "data");
    const keptClosed = once(kept, "close");
    await crowd(port, "127.0.0.1");
    await keptClosed;
    plane.traces.at(-1)?.reader.event('{"n":1}');
    plane.traces.at(-1)?.reader.end();
    const events: string[] = [];
    for await (const { raw } of trace) events.push(raw);
    assert.deepEqual(events, ['{"n":1}']);
  });
});
