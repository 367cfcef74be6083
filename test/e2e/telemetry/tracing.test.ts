import assert from "node:assert/strict";
import { test } from "node:test";
import type { RecordAnswer } from "../../../src/recorder/records.ts";
import { CHECK, CheckResponse } from "../../helpers/envoy/auth.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { type Entry, TestCollector } from "../../helpers/otlp/collector.ts";
import { attributesOf } from "../../helpers/otlp/decode.ts";
import { type RawMessage, RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { traceOf } from "../trace/support.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const PARENT = `00-${TRACE}-${SPAN}-01`;

/** An upstream that records the heads of its requests. */
async function upstreamOf(answer: (request: RawMessage) => string = () => reply("hello")) {
  const asked: RawMessage[] = [];
  const upstream = await RawUpstream.answering((request) => {
    asked.push(request);
    return answer(request);
  });
  return Object.assign(upstream, { asked });
}

function configOf(upstream: { port: number }, collector: { port: number }, more: object = {}, route: object = {}) {
  const routes = [{ matches: [{ path: { pathPrefix: "/shop" } }], backends: [{ host: to(upstream) }], ...route }];
  return {
    config: { workerThreads: 1 },
    frontendPolicies: { tracing: { host: to(collector), ...more } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  };
}

function to({ port }: { port: number }): string {
  return `127.0.0.1:${port}`;
}

async function get(gateway: TestGateway, path: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function recordsOf(gateway: TestGateway, id: unknown): Promise<RecordAnswer> {
  const response = await fetch(`${gateway.url("admin")}/requests/${id}`);
  assert.equal(response.status, 200);
  return (await response.json()) as RecordAnswer;
}

function byKind(entries: readonly Entry[], kind: number): Entry[] {
  return entries.filter((entry) => entry.kind === kind);
}

const SERVER = 2;
const CLIENT = 3;
const ERROR = 2;

for (const protocol of ["grpc", "http"] as const)
  test(`a trace continues through the gateway, and the collector gets both spans over ${protocol}`, async () => {
    await using upstream = await upstreamOf();
    await using collector = await TestCollector[protocol]();
    const more = {
      protocol,
      attributes: { user: 'request.headers["x-user"]', nothing: "request.headers.nothing" },
      resources: { "service.name": '"shop"' },
      remove: ["client.port", "network.peer.port"],
      policies: { requestHeaderModifier: { set: { "api-key": "secret" } } },
    };
    await using gateway = await TestGateway.start(configOf(upstream, collector, more), {
      env: { OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test%20only" },
    });
    const headers = { traceparent: PARENT, tracestate: "vendor=1", "x-user": "zoe", "user-agent": "test/1.0" };
    assert.equal(await get(gateway, "/shop/cart?token=t", headers), 200);
    const entries = await collector.until(({ length }) => length === 2);
    const [server = {}] = byKind(entries, SERVER);
    const [client = {}] = byKind(entries, CLIENT);
    assert.deepEqual([server.trace_id, server.parent_span_id, server.trace_state], [TRACE, SPAN, "vendor=1"]);
    assert.deepEqual([client.trace_id, client.parent_span_id], [TRACE, server.span_id]);
    const [asked] = upstream.asked;
    assert.ok(asked !== undefined);
    assert.deepEqual(valuesOf(asked, "traceparent"), [`00-${TRACE}-${client.span_id}-01`]);
    assert.deepEqual(valuesOf(asked, "tracestate"), ["vendor=1"]);

    assert.equal(server.name, "GET /shop/*");
    assert.equal(server.status, undefined);
    const { duration, endpoint, "request.id": id, ...attributes } = attributesOf(server.attributes);
    assert.deepEqual(valuesOf(asked, "x-request-id"), [id]);
    assert.equal(typeof duration, "number");
    assert.equal(endpoint, to(upstream));
    assert.deepEqual(attributes, {
      gateway: "default/default",
      listener: "listener0",
      "bytes.received": 0,
      "bytes.sent": "hello".length,
      route: "default/route0",
      "http.request.method": "GET",
      "http.route": "/shop/*",
      "http.response.status_code": 200,
      "url.scheme": "http",
      "url.path": "/shop/cart",
      "url.query": "token=<redacted>",
      "server.address": "127.0.0.1",
      "server.port": gateway.port(),
      "client.address": "127.0.0.1",
      "network.peer.address": "127.0.0.1",
      "network.protocol.version": "1.1",
      "user_agent.original": "test/1.0",
      "tracegate.record.id": "0-1",
      user: "zoe",
    });
    assert.equal(client.name, "GET");
    assert.deepEqual(attributesOf(client.attributes), {
      "tracegate.outbound.kind": "Primary",
      "tracegate.outbound.subtype": "Http",
      "http.request.method": "GET",
      "http.response.status_code": 200,
      "url.full": `http://127.0.0.1:${gateway.port()}/shop/cart`,
      "server.address": "127.0.0.1",
      "server.port": upstream.port,
      "network.peer.address": "127.0.0.1",
      "network.peer.port": upstream.port,
      "network.protocol.version": "1.1",
    });
    const times = [
      server.start_time_unix_nano,
      client.start_time_unix_nano,
      client.end_time_unix_nano,
      server.end_time_unix_nano,
    ];
    assert.deepEqual(times.toSorted(), times, "the call is inside the request");

    const [exported] = collector.exports;
    assert.ok(exported !== undefined);
    assert.equal(exported.path, protocol === "http" ? "/v1/traces" : "");
    assert.equal((exported.headers as Record<string, unknown>)["api-key"], "secret");
    const { resource, scope } = exported;
    assert.equal(scope.name, "tracegate");
    assert.deepEqual([resource["service.name"], resource["deployment.environment"]], ["shop", "test only"]);

    // The log has the same ids, and the dump shows no secret.
    await gateway.until(() => gateway.lines.some((line) => line["trace.id"] === TRACE), "the log line");
    const line = gateway.lines.find((each) => each["trace.id"] === TRACE);
    assert.equal(line?.["span.id"], server.span_id);
    const dump = await (await fetch(`${gateway.url("admin")}/config_dump`)).text();
    assert.ok(dump.includes('"randomSampling"') || dump.includes('"protocol": "'));
    assert.ok(!dump.includes('"secret"'), "no secret in the dump");
  });

test("which requests are sampled, and how a trace shows it", async () => {
  await using upstream = await upstreamOf();
  await using collector = await TestCollector.http();
  const more = {
    protocol: "http",
    randomSampling: 'request.headers["x-sample"] == "yes"',
    clientSampling: 'request.headers.traceparent.endsWith("-01")',
  };
  await using gateway = await TestGateway.start(configOf(upstream, collector, more));
  const decisionOf = async (headers: Record<string, string>): Promise<unknown> => {
    const events = await traceOf(gateway, () => get(gateway, "/shop", headers));
    const types = events.map(({ message }) => message.type);
    const at = types.indexOf("traceSampling");
    assert.deepEqual(types.slice(0, 4), ["requestStarted", "requestSnapshot", "traceSampling", "policySelection"]);
    const { message } = events[at] ?? {};
    return message?.type === "traceSampling" ? message.decision : undefined;
  };
  assert.equal(await decisionOf({ "x-sample": "yes" }), "sample (random)");
  assert.equal(await decisionOf({}), "not sampled (random)");
  assert.equal(await decisionOf({ traceparent: PARENT }), "sample (client)");
  assert.equal(await decisionOf({ traceparent: `00-${TRACE}-${SPAN}-00` }), "not sampled (client)");
  assert.equal(await decisionOf({ traceparent: `00-${TRACE}-${SPAN}-1`, tracestate: "a=1" }), "not sampled (random)");
  assert.equal(await decisionOf({ traceparent: "no", tracestate: "a=1", "x-sample": "yes" }), "sample (random)");
  const sent = upstream.asked.map((head) => [...valuesOf(head, "traceparent"), ...valuesOf(head, "tracestate")]);
  assert.match(sent[0]?.[0] ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.deepEqual(sent[1], [], "who is not sampled begins no trace");
  assert.deepEqual(sent[3], [`00-${TRACE}-${SPAN}-00`], "what is not recorded passes as it is");
  assert.deepEqual(sent[4], [`00-${TRACE}-${SPAN}-1`, "a=1"]);
  assert.equal(sent[5]?.length, 1, "the state of a trace that is not continued is dropped");
  assert.match(sent[5]?.[0] ?? "", /^00-[0-9a-f]{32}-/);
  const entries = await collector.until((all) => byKind(all, SERVER).length === 3);
  const fresh = byKind(entries, SERVER).filter(({ trace_id }) => trace_id !== TRACE);
  assert.deepEqual(
    fresh.map(({ parent_span_id }) => parent_span_id),
    [undefined, undefined],
  );
});

test("attempts, callouts and mirrors have their own spans, which show failures", async () => {
  let attempts = 0;
  await using upstream = await upstreamOf(() => reply("x", [], ++attempts === 1 ? "503 No" : "200 OK"));
  await using mirror = await upstreamOf();
  await using collector = await TestCollector.http();
  const metadata: string[] = [];
  await using service = await GrpcServer.start({
    [CHECK]: {
      unary(_message, sent) {
        metadata.push(...sent.get("traceparent").map(String));
        return CheckResponse.encode({});
      },
    },
  });
  const policies = {
    extAuthz: { host: to(service), protocol: { grpc: {} } },
    retry: { attempts: 1, codes: [503] },
    requestMirror: { backend: { host: to(mirror) }, percentage: 1 },
  };
  const config = configOf(upstream, collector, { protocol: "http" }, { policies });
  await using gateway = await TestGateway.start(config);
  assert.equal(await get(gateway, "/shop", { traceparent: PARENT }), 200);
  const entries = await collector.until(({ length }) => length === 5);
  const [server] = byKind(entries, SERVER);
  const calls = byKind(entries, CLIENT).map((span) => {
    assert.equal(span.parent_span_id, server?.span_id);
    const {
      "tracegate.outbound.kind": kind,
      "tracegate.outbound.subtype": subtype,
      ...rest
    } = attributesOf(span.attributes);
    return [
      span.name,
      kind,
      subtype,
      rest["http.response.status_code"],
      rest["http.request.resend_count"],
      span.status,
    ];
  });
  assert.deepEqual(calls.toSorted(), [
    ["ExtAuthz", "Policy", "ExtAuthz", 200, undefined, undefined],
    ["GET", "Primary", "Http", 200, 1, undefined],
    ["GET", "Primary", "Http", 503, undefined, { code: ERROR }],
    ["Http", "Mirror", "Http", 200, undefined, undefined],
  ]);
  const idOf = (kind: string): (string | undefined)[] =>
    byKind(entries, CLIENT)
      .filter(({ attributes }) => attributesOf(attributes)["tracegate.outbound.kind"] === kind)
      .map(({ span_id }) => `00-${TRACE}-${span_id}-01`);
  assert.deepEqual(
    upstream.asked.flatMap((head) => valuesOf(head, "traceparent")),
    idOf("Primary"),
  );
  assert.deepEqual(
    mirror.asked.flatMap((head) => valuesOf(head, "traceparent")),
    idOf("Mirror"),
  );
  assert.deepEqual(metadata, idOf("Policy"));

  const status = await get(gateway, "/elsewhere", { traceparent: PARENT });
  assert.equal(status, 404);
  const [, missed] = byKind(await collector.until((all) => byKind(all, SERVER).length === 2), SERVER);
  assert.equal(missed?.name, "GET");
  assert.equal(missed?.status, undefined, "a 404 is no error of the server");
  const why = "the nearest is default/route0: path: /elsewhere is not under prefix /shop";
  assert.equal(attributesOf(missed?.attributes)["tracegate.error"], `route not found: ${why}`);
});

test("a filter drops spans, a policy can remove the header, and an attribute names the span", async () => {
  await using upstream = await upstreamOf((request) =>
    reply("x", [], request.start.startsWith("GET /shop/bad ") ? "500 No" : "200 OK"),
  );
  await using collector = await TestCollector.http();
  const more = {
    protocol: "http",
    filter: "response.code >= 500",
    attributes: { "span.name": '"shop " + request.method' },
  };
  const policies = { requestHeaderModifier: { remove: ["traceparent"] } };
  await using gateway = await TestGateway.start(configOf(upstream, collector, more, { policies }));
  for (const path of ["/shop/good", "/shop/bad"]) await get(gateway, path, { traceparent: PARENT });
  const entries = await collector.until(({ length }) => length === 2);
  const [server] = byKind(entries, SERVER);
  assert.equal(server?.name, "shop GET");
  assert.equal(attributesOf(server?.attributes)["span.name"], undefined);
  assert.deepEqual(server?.status, { code: ERROR });
  assert.equal(attributesOf(server?.attributes)["error.type"], "500");
  assert.deepEqual(
    upstream.asked.flatMap((head) => valuesOf(head, "traceparent")),
    [],
  );
});

test("a setting keeps the old names of spans and attributes", async () => {
  await using upstream = await upstreamOf();
  await using collector = await TestCollector.http();
  await using gateway = await TestGateway.start(
    configOf(upstream, collector, { protocol: "http", semanticConventions: "old", remove: ["src.addr"] }),
  );
  await get(gateway, "/shop/cart?token=t", { traceparent: PARENT });
  await get(gateway, "/elsewhere", { traceparent: PARENT });
  const entries = await collector.until((all) => byKind(all, SERVER).length === 2);
  const [server, missed] = byKind(entries, SERVER);
  const [client] = byKind(entries, CLIENT);
  assert.equal(server?.name, "GET /shop/*");
  const { duration, "request.id": id, ...attributes } = attributesOf(server?.attributes);
  assert.deepEqual(attributes, {
    gateway: "default/default",
    listener: "listener0",
    route: "default/route0",
    endpoint: to(upstream),
    "http.method": "GET",
    "http.host": "127.0.0.1",
    "http.path": "/shop/cart?token=<redacted>",
    "http.version": "HTTP/1.1",
    "http.status": 200,
    protocol: "http",
    "bytes.received": 0,
    "bytes.sent": "hello".length,
    "url.scheme": "http",
    "network.protocol.version": "1.1",
    "tracegate.record.id": "0-1",
  });
  assert.equal(client?.name, `GET ${to(upstream)}`);
  assert.deepEqual(attributesOf(client?.attributes), {
    "tracegate.outbound.kind": "Primary",
    "tracegate.outbound.subtype": "Http",
    "http.method": "GET",
    "http.host": `127.0.0.1:${gateway.port()}`,
    "http.path": "/shop/cart",
    "http.status": 200,
  });
  assert.equal(missed?.name, "unknown");
  assert.equal((missed?.status as { code?: number } | undefined)?.code, ERROR);
});

test("a span leads to the record of its request and to the rule that decided", async () => {
  await using upstream = await upstreamOf();
  await using collector = await TestCollector.http();
  const rules = [{ deny: "false" }, { deny: 'request.path == "/shop/denied"' }];
  const config = configOf(upstream, collector, { protocol: "http" }, { policies: { authorization: { rules } } });
  await using gateway = await TestGateway.start(config);
  assert.equal(await get(gateway, "/shop/denied", { traceparent: PARENT, "x-request-id": "the-first" }), 403);
  assert.equal(await get(gateway, "/shop/fine", { traceparent: PARENT }), 200);
  const spans = byKind(await collector.until((all) => byKind(all, SERVER).length === 2), SERVER);
  const [denied = {}, fine = {}] = spans.map(({ attributes }) => attributesOf(attributes));
  const rule = "binds[0].listeners[0].routes[0].policies.authorization.rules[1]";
  assert.deepEqual([denied["tracegate.decided_by"], denied.reason], [rule, "Authorization"]);
  assert.equal(fine["tracegate.decided_by"], undefined);
  const { records } = await recordsOf(gateway, denied["tracegate.record.id"]);
  assert.deepEqual(
    records.map(({ id, status, traceId }) => [id, status, traceId]),
    [["the-first", 403, TRACE]],
  );
});

test("span, log, exported log and record have one trace id, sampled or not, even if a policy removes the header", async () => {
  await using upstream = await upstreamOf();
  await using collector = await TestCollector.http();
  const policies = { requestHeaderModifier: { remove: ["traceparent"] } };
  const config = configOf(
    upstream,
    collector,
    {
      protocol: "http",
      clientSampling: 'request.headers.traceparent.endsWith("-01")',
    },
    { policies },
  );
  const accessLog = { otlp: { host: to(collector), protocol: "http" } };
  const frontendPolicies = { ...config.frontendPolicies, accessLog };
  await using gateway = await TestGateway.start({ ...config, frontendPolicies });
  const unsampled = TRACE.replaceAll("4", "5");
  const wrong = TRACE.toUpperCase();
  await get(gateway, "/shop/sampled", { traceparent: PARENT });
  await get(gateway, "/shop/unsampled", { traceparent: `00-${unsampled}-${SPAN}-00` });
  await get(gateway, "/shop/invalid", { traceparent: `00-${wrong}-${SPAN}-01` });
  const linesOf = () => gateway.lines.filter((line) => line["http.path"] !== undefined);
  await gateway.until(() => linesOf().length === 3, "three lines");
  const logged = linesOf().map((line) => [line["http.path"], line["trace.id"], line["span.id"] !== undefined]);
  assert.deepEqual(logged, [
    ["/shop/sampled", TRACE, true],
    ["/shop/unsampled", unsampled, false],
    ["/shop/invalid", undefined, false],
  ]);
  const logsOf = (all: readonly Entry[]): Entry[] => all.filter(({ body }) => body !== undefined);
  const entries = await collector.until((all) => logsOf(all).length === 3 && byKind(all, SERVER).length > 0);
  assert.deepEqual(
    byKind(entries, SERVER).map(({ trace_id }) => trace_id),
    [TRACE],
  );
  assert.deepEqual(
    logsOf(entries).map(({ trace_id, span_id, flags }) => [trace_id, span_id !== undefined, flags]),
    [
      [TRACE, true, 1],
      [unsampled, false, undefined],
      [undefined, false, undefined],
    ],
  );
  for (const [traceId, path] of [
    [TRACE, "/shop/sampled"],
    [unsampled, "/shop/unsampled"],
  ]) {
    const { records } = await recordsOf(gateway, traceId);
    assert.deepEqual(
      records.map((record) => [record.path, record.traceId]),
      [[path, traceId]],
    );
  }
  const { records } = await recordsOf(gateway, "0-3");
  assert.deepEqual(
    records.map((record) => [record.path, record.traceId]),
    [["/shop/invalid", undefined]],
  );
});

test("a user agent that is configured as a secret is in no span", async () => {
  await using upstream = await upstreamOf();
  await using collector = await TestCollector.http();
  const base = configOf(upstream, collector, { protocol: "http" });
  const config = { ...base, config: { ...base.config, sensitiveHeaders: ["User-Agent"] } };
  await using gateway = await TestGateway.start(config);
  await get(gateway, "/shop", { traceparent: PARENT, "user-agent": "hunter2" });
  const [server] = byKind(await collector.until(({ length }) => length === 2), SERVER);
  assert.equal(attributesOf(server?.attributes)["user_agent.original"], "<redacted>");
});
