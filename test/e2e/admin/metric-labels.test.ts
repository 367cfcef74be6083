import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { until } from "../../helpers/until.ts";
import { call, closedPort, rawClient } from "../trace/support.ts";

test("metrics carry the labels that the configuration adds, summed over workers", async () => {
  const refused = await closedPort();
  await using gateway = await TestGateway.start({
    config: {
      workerThreads: 2,
      metrics: {
        remove: ["retries"],
        fields: {
          add: {
            tenant: 'request.headers["x-tenant"]',
            ok: "response.code < 400",
            shape: '{"a": 1}',
            port: "destination.port",
          },
        },
      },
    },
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              { name: "ok", policies: { directResponse: { status: 200, body: "x" } } },
              { name: "down", matches: [{ path: { exact: "/down" } }], backends: [{ host: `127.0.0.1:${refused}` }] },
            ],
          },
        ],
      },
    ],
  });
  const port = gateway.port();
  const tenant = (name: string) => ({ headers: { "x-tenant": name } });
  for (let i = 0; i < 4; i++) await call(port, tenant("a"));
  await call(port, tenant('say "hi"'));
  await call(port, tenant("x".repeat(200)));
  await call(port, {});
  await call(port, { path: "/down", ...tenant("a") });
  // Connections without requests have the labels too, because all series of a metric must have the same ones.
  const bad = await rawClient(port, "nonsense\r\n\r\n");
  await new Promise((resolve) => bad.once("data", resolve));
  bad.destroy();

  // A client can have its response before the request is counted.
  const { text, totals } = await until(async () => {
    const text = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
    const totals = new Map<string, number>();
    for (const line of text.split("\n")) {
      const labels = /^tracegate_requests_total\{.*,(tenant=.*)\} (\d+)$/.exec(line);
      if (labels !== null) totals.set(labels[1] ?? "", (totals.get(labels[1] ?? "") ?? 0) + Number(labels[2]));
    }
    return [...totals.values()].reduce((sum, count) => sum + count, 0) >= 9 && { text, totals };
  }, "the nine requests to be counted");
  const rest = `shape="unknown",port="${port}"`;
  assert.deepEqual(
    totals,
    new Map([
      [`tenant="a",ok="true",${rest}`, 4],
      [`tenant="say \\"hi\\"",ok="true",${rest}`, 1],
      [`tenant="${"x".repeat(128)}",ok="true",${rest}`, 1],
      [`tenant="unknown",ok="true",${rest}`, 1],
      [`tenant="a",ok="false",${rest}`, 1],
      ['tenant="unknown",ok="unknown",shape="unknown",port="unknown"', 1],
    ]),
    text,
  );
  assert.doesNotMatch(text, /^tracegate_request_duration_seconds_bucket\{.*tenant=/m, "on counters only");
  assert.doesNotMatch(text, /^tracegate_retries_total/m);
});
