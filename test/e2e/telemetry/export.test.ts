import assert from "node:assert/strict";
import { test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { attributesOf } from "../../helpers/otlp/decode.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { until } from "../../helpers/until.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

function bindsTo({ port }: { port: number }, policies: object = {}): object {
  const routes = [{ policies, backends: [{ host: `127.0.0.1:${port}` }] }];
  return { config: { workerThreads: 1 }, binds: [{ port: 0, listeners: [{ routes }] }] };
}

async function get(gateway: TestGateway, path: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** Samples of the metrics of exports, without those that are 0. */
async function counts(gateway: TestGateway): Promise<Record<string, number>> {
  const text = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  const samples = [...text.matchAll(/^tracegate_telemetry_(\S+) (\d+)$/gm)].map(([, name, value]) => [
    name,
    Number(value),
  ]);
  return Object.fromEntries(samples.filter(([, value]) => value !== 0));
}

test("a collector that is down delays no request; lost entries are counted, and logged once", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello"));
  let down = true;
  await using collector = await TestCollector.http(() =>
    down ? { status: 503, headers: { "retry-after": "1" } } : { status: 200 },
  );
  const tracing = { host: `127.0.0.1:${collector.port}`, protocol: "http" };
  const refusing = { host: "127.0.0.1:1", filter: 'request.path == "/logged"' };
  await using gateway = await TestGateway.start({
    ...bindsTo(upstream),
    frontendPolicies: { tracing, accessLog: { otlp: refusing } },
  });
  assert.deepEqual(await counts(gateway), {});
  for (let i = 0; i < 20; i++) assert.equal(await get(gateway, "/", { traceparent: PARENT }), 200);
  await get(gateway, "/logged");
  const told = (signal: string, message: string) =>
    gateway.lines.filter((line) => line.signal === signal && line.message === message);
  await gateway.until(() => told("traces", "cannot export").length > 0, "the warning");
  await gateway.until(() => told("logs", "cannot export").length > 0, "the other warning");
  assert.equal(told("traces", "cannot export")[0]?.error, "status 503");
  assert.match(String(told("logs", "cannot export")[0]?.error), /^gRPC status 14: /);
  down = false;
  await gateway.until(() => told("traces", "exporting again").length > 0, "the exports");
  const entries = await collector.until(({ length }) => length === 40);
  assert.equal(new Set(entries.map(({ span_id }) => span_id)).size, 40, "each span once");
  assert.equal(told("traces", "cannot export").length, 1);
  assert.equal((await counts(gateway))['exported_total{signal="traces"}'], 40);
});

test("entries that a collector rejects are not sent again, and the metric counts them", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello"));
  let asked = 0;
  await using collector = await TestCollector.http(() => {
    asked++;
    return { status: 400 };
  });
  await using gateway = await TestGateway.start({
    ...bindsTo(upstream),
    frontendPolicies: { tracing: { host: `127.0.0.1:${collector.port}`, protocol: "http", randomSampling: true } },
  });
  await get(gateway, "/");
  await until(async () => (await counts(gateway))['dropped_total{signal="traces",reason="rejected"}'] === 2);
  assert.equal(asked, 1);
});

test("a drain waits for the last spans", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello"));
  let ready = false;
  await using collector = await TestCollector.grpc(() => {
    // Not before the gateway drains.
    if (!ready) throw Object.assign(new Error("not yet"), { code: 14 });
  });
  await using gateway = await TestGateway.start({
    ...bindsTo(upstream),
    frontendPolicies: { tracing: { host: `127.0.0.1:${collector.port}`, randomSampling: true } },
  });
  for (let i = 0; i < 5; i++) await get(gateway, "/");
  await gateway.until(() => gateway.lines.some((line) => line.message === "cannot export"), "the warning");
  ready = true;
  // Entries that the worker still collects are exported too.
  await get(gateway, "/");
  await gateway.drain();
  assert.equal(collector.entries.length, 12);
});

test("records of the access log: their own fields, the span's ids, decisions in shadow, and no redacted credential", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello"));
  await using collector = await TestCollector.grpc();
  const host = `127.0.0.1:${collector.port}`;
  const policies = {
    apiKey: { keys: [{ key: "secret-key" }], location: { queryParameter: { name: "key" } } },
    authorization: { shadow: true, rules: [{ deny: 'request.path.startsWith("/shop")' }] },
  };
  const denial =
    'authorization:deny rules[0] is true (request.path: "/shop"), at binds[0].listeners[0].routes[0].policies.authorization.rules[0]';
  await using gateway = await TestGateway.start({
    ...bindsTo(upstream, policies),
    frontendPolicies: {
      tracing: { host },
      accessLog: {
        filter: "response.code == 200",
        add: { user: 'request.headers["x-user"]' },
        otlp: { host, fields: { add: { size: "size(request.path)" }, remove: ["src.addr", "http.host"] } },
      },
    },
  });
  assert.equal(await get(gateway, "/nothing?key=wrong"), 401);
  assert.equal(await get(gateway, "/shop?key=secret-key&a=1", { traceparent: PARENT, "x-user": "zoe" }), 200);
  await collector.until((all) => all.length === 3);
  const [record] = collector.exports.filter(({ signal }) => signal === "logs").flatMap(({ entries }) => entries);
  assert.equal(record?.trace_id, TRACE);
  assert.deepEqual(record?.body, { string_value: "GET /shop?key=<redacted>&a=1 200" });
  const { duration: _, endpoint: _e, "request.id": id, ...attributes } = attributesOf(record?.attributes);
  assert.deepEqual(attributes, {
    gateway: "default/default",
    listener: "listener0",
    route: "default/route0",
    "http.method": "GET",
    "http.path": "/shop?key=<redacted>&a=1",
    "http.version": "HTTP/1.1",
    "http.status": 200,
    protocol: "http",
    "bytes.received": 0,
    "bytes.sent": "hello".length,
    shadow: [denial],
    size: 5,
  });
  await gateway.until(() => gateway.lines.some((each) => each["request.id"] === id), "the log line");
  const [line] = gateway.lines.filter((each) => each["http.path"] !== undefined);
  assert.equal(line?.user, "zoe");
  const spans = collector.exports.filter(({ signal }) => signal === "traces").flatMap(({ entries }) => entries);
  const text = JSON.stringify(spans, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  assert.ok(!text.includes("secret-key"), "no credential in spans");
  const served = spans.find(({ kind }) => kind === 2);
  assert.equal(served?.span_id, record?.span_id);
  assert.deepEqual(attributesOf(served?.attributes).shadow, [denial]);
});

test("the environment names a collector; after a reload, another one gets later entries", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello"));
  await using first = await TestCollector.http();
  await using second = await TestCollector.grpc();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${first.port}/otlp/`,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20b",
    OTEL_SERVICE_NAME: "edge",
  };
  await using gateway = await TestGateway.start(bindsTo(upstream), { env });
  await get(gateway, "/", { traceparent: PARENT });
  await first.until(({ length }) => length === 2);
  const [exported] = first.exports;
  assert.equal(exported?.path, "/otlp/v1/traces");
  assert.equal(new Map(Object.entries(exported?.headers ?? {})).get("api-key"), "a b");
  assert.equal(exported?.resource["service.name"], "edge");
  const frontendPolicies = { tracing: { host: `127.0.0.1:${second.port}` } };
  assert.equal(await gateway.reconfigure({ ...bindsTo(upstream), frontendPolicies }), "applied");
  await get(gateway, "/", { traceparent: PARENT });
  await second.until(({ length }) => length === 2);
  assert.equal(first.entries.length, 2);
});
