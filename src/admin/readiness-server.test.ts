import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../net/testing/egress.ts";
import { startReadinessServer } from "./readiness-server.ts";

const HOST = ["host: metrics.example"];
const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("readiness names what is pending, and logs louder the longer it lasts", async () => {
  const plane = new TestPlane();
  plane.waiting = ["state manager", "tracegate"];
  const server = await startReadinessServer(plane, any, plane.log, unguarded());
  try {
    const [address] = server.addresses;
    for (let i = 0; i < 31; i++) {
      const { status, body } = await ask(address, "GET", "/healthz/ready", HOST);
      assert.deepEqual([status, body], [500, "not ready, pending: state manager, tracegate\n"]);
    }
    const alive = await ask(address, "GET", "/healthz/live", HOST);
    assert.deepEqual([alive.status, alive.body], [200, "alive\n"]);
    const levels = plane.lines.map((line) => line.split("\t")[1]);
    assert.deepEqual(
      ["debug", "info", "warn"].map((level) => levels.filter((each) => each === level).length),
      [5, 25, 1],
    );
    plane.waiting = [];
    const ready = await ask(address, "GET", "/healthz/ready", HOST);
    assert.deepEqual([ready.status, ready.body], [200, "ready\n"]);
    const post = await ask(address, "POST", "/healthz/ready", HOST);
    assert.deepEqual([post.status, post.body], [405, ""]);
    assert.equal((await ask(address, "GET", "/", HOST)).status, 404);
  } finally {
    await server.close();
  }
});
