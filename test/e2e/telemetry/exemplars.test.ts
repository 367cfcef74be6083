/** A spike in a histogram leads to a request that the gateway still knows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordAnswer } from "../../../src/recorder/records.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

test("exemplars name kept requests only, and their ids find the records", async () => {
  await using upstream = await RawUpstream.answering(({ start }) =>
    reply("x", [], start.includes("/broken") ? "500 No" : "200 OK"),
  );
  const routes = [{ name: "shop", backends: [{ host: `127.0.0.1:${upstream.port}` }] }];
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const get = async (path: string, headers: Record<string, string>): Promise<void> => {
    await (await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers })).arrayBuffer();
  };
  await get("/fine?token=hunter2", { "x-request-id": "fine" });
  await get("/broken?token=hunter2", { "x-request-id": "broken", traceparent: `00-${TRACE}-00f067aa0ba902b7-00` });
  const metrics = async (accept: string): Promise<string> =>
    (await fetch(`${gateway.url("stats")}/metrics`, { headers: { accept } })).text();
  const exemplars = (await metrics(OPEN_METRICS)).split("\n").flatMap((line) => {
    const [, metric, labels, record, trace, id] =
      /^tracegate_(\w+)_bucket\{(.*),le="[^"]+"\} 1 # \{record_id="(.*)",trace_id="(.*)",request_id="(.*)"\} \S+ \S+$/.exec(
        line,
      ) ?? [];
    return metric === undefined ? [] : [{ metric, labels, record, trace, id }];
  });
  const route = 'route="default/shop"';
  const shown = exemplars.map(({ metric, labels, trace, id }) => [metric, labels, trace, id]);
  assert.deepEqual(shown.slice(0, 1), [
    ["request_duration_seconds", `${route},method_class="safe",status_class="5xx"`, TRACE, "broken"],
  ]);
  for (const { record } of exemplars) {
    const response = await fetch(`${gateway.url("admin")}/requests/${record}`);
    const { records } = (await response.json()) as RecordAnswer;
    assert.deepEqual(
      records.map(({ id }) => id),
      ["broken"],
    );
  }
  assert.doesNotMatch(await metrics(OPEN_METRICS), /hunter2/);
  assert.doesNotMatch(await metrics("text/plain"), / # /);
});
