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

test("clients that ask for OpenMetrics get it, unless they prefer plain text", async () => {
  const plane = new TestPlane();
  const server = await startStatsServer(plane, any, plane.log, unguarded());
  const [open, text] = [
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    "text/plain; version=0.0.4; charset=utf-8",
  ];
  try {
    for (const [accept, type] of [
      [
        "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;q=0.3,*/*;q=0.2",
        open,
      ],
      ["application/openmetrics-text", open],
      ["text/plain, application/openmetrics-text; version=1.0.0", open],
      ["text/plain, application/openmetrics-text;q=0.9", text],
      ["application/openmetrics-text;q=0", text],
      ["application/openmetrics-text;version=0.0.1", text],
      ["*/*", text],
    ] as const) {
      const { head } = await ask(server.addresses[0], "GET", "/metrics", [...HOST, `accept: ${accept}`]);
      assert.equal(/^content-type: (.*)$/im.exec(head)?.[1]?.trim(), type, accept);
    }
  } finally {
    await server.close();
  }
});
