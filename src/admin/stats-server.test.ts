import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeRaw, head, parseResponse } from "../../test/helpers/admin/raw-request.ts";
import { TestPlane } from "../../test/helpers/admin/test-plane.ts";
import { startStatsServer } from "./stats-server.ts";

const any = { type: "socket", host: "127.0.0.1", port: 0 } as const;

async function ask(
  address: string | undefined,
  method: string,
  target: string,
): Promise<ReturnType<typeof parseResponse>> {
  return parseResponse(await exchangeRaw(address ?? "", head(method, target, ["host: metrics.example"])));
}

test("the stats server serves the metrics under both paths and nothing else", async () => {
  const plane = new TestPlane();
  const server = await startStatsServer(plane, any, plane.log);
  try {
    const [address] = server.addresses;
    for (const path of ["/metrics", "/stats/prometheus", "/metrics?x=1"]) {
      const { status, head: fields, body } = await ask(address, "GET", path);
      assert.equal(status, 200);
      assert.match(fields, /content-type: text\/plain; version=0\.0\.4/i);
      assert.equal(body, "# TYPE tracegate_requests_total counter\n");
    }
    assert.equal((await ask(address, "GET", "/config_dump")).status, 404);
    assert.equal((await ask(address, "POST", "/metrics")).status, 405);
  } finally {
    await server.close();
  }
});
