import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../../net/testing/egress.ts";
import { startAdminServer } from "../admin-server.ts";

test("the shutdown begins after the response", async () => {
  const plane = new TestPlane();
  const server = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log, unguarded());
  try {
    const text = await exchangeRaw(server.addresses[0] ?? "", head("POST", "/quitquitquit"));
    const { status, body } = parseResponse(text);
    assert.deepEqual([status, body], [200, "shutdown now\n"]);
    await plane.until(() => plane.shutdowns === 1);
  } finally {
    await server.close();
  }
});

test("requests that config.admin does not allow get 403 and have no effect", async () => {
  const plane = new TestPlane();
  plane.permits = { ...plane.permits, reveal: false, quit: false };
  const server = await startAdminServer(plane, { type: "socket", host: "127.0.0.1", port: 0 }, plane.log, unguarded());
  const ask = async (path: string): Promise<[number, string]> => {
    const { status, body } = parseResponse(await exchangeRaw(server.addresses[0] ?? "", head("POST", path)));
    return [status, body];
  };
  try {
    assert.deepEqual(await ask("/quitquitquit"), [
      403,
      "config.admin.quit does not allow shutting this gateway down through its admin API; send it SIGTERM\n",
    ]);
    assert.deepEqual(await ask("/debug/trace?reveal=true"), [
      403,
      "config.admin.reveal does not allow revealing secrets; trace without reveal\n",
    ]);
    assert.deepEqual([plane.shutdowns, plane.traces.length], [0, 0]);
  } finally {
    await server.close();
  }
});
