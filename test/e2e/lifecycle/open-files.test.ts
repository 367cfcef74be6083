import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { call, Upstream } from "../trace/support.ts";

/** Of the process; more than it needs without clients. */
const OPEN_FILES = 300;

test("clients that use up their connections leave readiness, metrics and backends reachable", async (t) => {
  const upstream = await Upstream.start();
  const clients: Socket[] = [];
  t.after(async () => {
    for (const client of clients) client.destroy();
    await upstream.close();
  });
  await using gateway = await TestGateway.start(proxyTo(upstream.address), { openFiles: OPEN_FILES });
  for (let i = 0; i < OPEN_FILES; i++) {
    const client = connect(gateway.port(), "127.0.0.1");
    client.on("error", () => undefined).resume();
    clients.push(client);
    await once(client, "connect");
  }
  await gateway.until(
    () => gateway.lines.some(({ level, message }) => level === "warn" && /ulimit -n/.test(String(message))),
    "the warning",
  );
  assert.equal((await fetch(`${gateway.url("readiness")}/healthz/ready`)).status, 200);
  assert.equal((await fetch(`${gateway.url("stats")}/metrics`)).status, 200);
  const served = clients[0] as Socket;
  const answer = once(served, "data");
  const closed = once(served, "close");
  served.write("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  assert.match(String(await answer), /^HTTP\/1\.1 200 /);
  await closed;
  // The gateway may learn a moment later than the client that the connection has closed.
  const deadline = Date.now() + 30_000;
  let status: number | undefined;
  while (status === undefined) {
    status = await call(gateway.port(), {}).then(
      (each) => each.status,
      () => undefined,
    );
    assert.ok(Date.now() < deadline, "a connection that closes makes no room");
  }
  assert.equal(status, 200);
});
