import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../test/helpers/admin/test-plane.ts";
import { unguarded } from "../net/testing/egress.ts";
import { startStatsServer } from "./stats-server.ts";

const HOST = ["host: metrics.example"];
const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

test("the stats server serves the metrics under both paths and nothing else", async () => {
  const plane = new TestPlane();
  const server = await startStatsServer(plane, any, plane.log, unguarded());
  try {
    const [address] = server.addresses;
    for (const path of ["/metrics", "/stats/prometheus", "/metrics?x=1"]) {
      const { status, head: fields, body } = await ask(address, "GET", path, HOST);
      assert.equal(status, 200);
      assert.match(fields, /content-type: text\/plain; version=0\.0\.4/i);
      assert.equal(body, "# TYPE tracegate_requests_total counter\n");
    }
    assert.equal((await ask(address, "GET", "/config_dump", HOST)).status, 404);
    assert.equal((await ask(address, "POST", "/metrics", HOST)).status, 405);
  } finally {
    await server.close();
  }
});
