import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { REQUEST_STATE_KEYS, SEQUENCE_GET } from "./expected.ts";
import { bodyAt, call, messageOf, sequence, stateAt, traceOf, Upstream } from "./support.ts";

const EFFECTIVE_KEYS = [
  ...["localRateLimit", "remoteRateLimit", "authorization", "jwt", "oidc", "basicAuth", "apiKey", "extAuthz"],
  ...["extProc", "transformation", "csrf", "directResponse", "requestHeaderModifier", "responseHeaderModifier"],
  ...["requestRedirect", "urlRewrite", "cors"],
];
const LISTENER = "default/default/bind/0/listener0";

suite("the events of a trace", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/echo", (request, response) => request.pipe(response));
    upstream.on("/empty", (_request, response) => response.writeHead(204).end());
    upstream.on("/status/500", (_request, response) => response.writeHead(500).end("broken"));
    upstream.on("/status/403", (_request, response) => response.writeHead(403).end());
    const backends = [{ host: upstream.address }];
    gateway = await TestGateway.start({
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "HTTP",
              routes: [
                { name: "plain", backends },
                {
                  name: "policies",
                  matches: [{ path: { pathPrefix: "/policies" } }],
                  policies: {
                    timeout: { requestTimeout: "20s" },
                    requestHeaderModifier: { set: { "x-added": "1" } },
                    urlRewrite: { path: { prefix: "/rewritten" } },
                    responseHeaderModifier: { set: { "x-answer": "2" } },
                  },
                  backends: [
                    {
                      host: upstream.address,
                      policies: {
                        requestHeaderModifier: { set: { "x-b": "3" } },
                        // A setting of the call, like `timeout` above: no stage is named after it.
                        http: { requestTimeout: "20s" },
                      },
                    },
                  ],
                },
              ],
            },
          ],
        },
      ],
    });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  test("a GET without policies: exactly the sequence of the interface", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/some/path?x=1", headers: { "x-test": "abc" } }));
    assert.deepEqual(sequence(events), SEQUENCE_GET);
    assert.equal(bodyAt(events, "response").text.toString(), "hello");
  });

  test("a POST adds its body between the start and the result of the call", async () => {
    const events = await traceOf(gateway, () => call(port, { method: "POST", path: "/echo", body: "a body ✓" }));
    const expected = SEQUENCE_GET.toSpliced(
      SEQUENCE_GET.indexOf("backendCallStart") + 1,
      0,
      "bodySnapshot final request",
    );
    assert.deepEqual(sequence(events), expected);
    assert.equal(bodyAt(events, "final request").text.toString(), "a body ✓");
    assert.equal(bodyAt(events, "response").text.toString(), "a body ✓");
  });

  test("messages without a body have no body snapshot", async () => {
    const events = await traceOf(gateway, () => call(port, { method: "POST", path: "/empty", body: "" }));
    const expected = SEQUENCE_GET.filter((each) => each !== "bodySnapshot response");
    assert.deepEqual(sequence(events), expected);
  });

  test("every event has the fields of its type and nothing else", async () => {
    const events = await traceOf(gateway, () => call(port, { method: "POST", path: "/echo", body: "x" }));
    const fields: Record<string, string[]> = {
      requestStarted: ["requestId"],
      requestSnapshot: ["stage", "requestState"],
      responseSnapshot: ["stage", "requestState"],
      routeSelection: ["selectedRoute", "evaluatedRoutes", "candidates"],
      policySelection: ["phase", "effectivePolicy"],
      backendCallStart: ["target"],
      bodySnapshot: ["stage", "body"],
      backendCallResult: ["status", "error", "timing"],
      requestFinished: ["status", "error"],
    };
    for (const event of events) {
      assert.deepEqual(Object.keys(event), ["eventStart", "eventEnd", "severity", "message"]);
      assert.deepEqual(Object.keys(event.message), ["type", ...(fields[event.message.type] ?? ["unknown type"])]);
    }
  });

  test("requestState has exactly the fields of the interface at each stage", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/some/path?x=1", headers: { "x-test": "abc" } }));
    for (const { message } of events) {
      if (!("requestState" in message)) continue;
      const expected = REQUEST_STATE_KEYS[message.stage];
      assert.deepEqual(Object.keys(message.requestState).sort(), expected, message.stage);
      assert.deepEqual(message.requestState.env, {});
    }
    const { request, source, backend } = stateAt(events, "final request");
    const { startTime, ...rest } = request ?? { startTime: "" };
    const id = events.flatMap(({ message }) => (message.type === "requestStarted" ? [message.requestId] : []));
    assert.deepEqual(rest, {
      method: "GET",
      uri: "http://a.test/some/path?x=1",
      path: "/some/path",
      pathAndQuery: "/some/path?x=1",
      host: "a.test",
      scheme: "http",
      version: "HTTP/1.1",
      headers: {
        "x-test": "abc",
        "x-request-id": id[0],
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-proto": "http",
        "x-forwarded-host": "a.test",
      },
    });
    assert.deepEqual(stateAt(events, "initial request").request?.headers, { "x-test": "abc" });
    assert.match(startTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    assert.deepEqual(Object.keys(source ?? {}), ["address", "port", "rawAddress", "rawPort"]);
    assert.equal(source?.address, "127.0.0.1");
    assert.equal(source?.rawPort, source?.port);
    assert.deepEqual(backend, { name: `/${LISTENER}/default/plain/backend0`, type: "static", protocol: "http" });
    assert.equal(stateAt(events, "initial request").request?.host, "a.test");
    const { response, proxy } = stateAt(events, "raw response");
    assert.deepEqual(Object.keys(response ?? {}), ["code", "headers"]);
    assert.equal(response?.code, 200);
    assert.deepEqual(Object.keys(proxy ?? {}), ["requestProcessingDuration", "upstreamDuration"]);
    for (const duration of Object.values(proxy ?? {})) assert.match(duration, /^\d+\.\d+s$/);
  });

  test("times: integers that never decrease; only the call has an eventStart", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/policies" }));
    let last = 0;
    for (const { eventStart, eventEnd, message } of events) {
      assert.ok(Number.isInteger(eventEnd) && eventEnd >= last, `${message.type} at ${eventEnd} after ${last}`);
      last = eventEnd;
      if (message.type !== "backendCallResult") assert.equal(eventStart, null, message.type);
      else assert.ok(Number.isInteger(eventStart) && Number(eventStart) < eventEnd, `${eventStart} to ${eventEnd}`);
    }
  });

  test("effectivePolicy has all keys of the interface, and others only if they are set", async () => {
    const plain = await traceOf(gateway, () => call(port, { path: "/" }));
    for (const { message } of plain) {
      if (message.type !== "policySelection") continue;
      assert.deepEqual(Object.keys(message.effectivePolicy), EFFECTIVE_KEYS, message.phase);
      assert.ok(Object.values(message.effectivePolicy).every((value) => value === null));
    }
    const events = await traceOf(gateway, () => call(port, { path: "/policies" }));
    const set: Record<string, string[]> = {};
    for (const { message } of events) {
      if (message.type !== "policySelection") continue;
      const { phase, effectivePolicy } = message;
      for (const key of EFFECTIVE_KEYS) assert.ok(key in effectivePolicy, `${key} in ${phase}`);
      set[phase] = Object.keys(effectivePolicy)
        .filter((key) => effectivePolicy[key] !== null)
        .sort();
    }
    assert.deepEqual(set, {
      gateway: [],
      route: ["requestHeaderModifier", "responseHeaderModifier", "timeout", "urlRewrite"],
      backend: ["http", "requestHeaderModifier"],
    });
  });

  test("policies that ran have their own snapshots between the phases", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/policies/x" }));
    const stages = sequence(events).filter((each) => /Snapshot/.test(each));
    assert.deepEqual(stages, [
      "requestSnapshot initial request",
      "requestSnapshot gateway policies",
      "requestSnapshot request header modifier",
      "requestSnapshot url rewrite",
      "requestSnapshot route policies",
      "requestSnapshot backend request header modifier",
      "requestSnapshot final request",
      "responseSnapshot raw response",
      "responseSnapshot backend response ready",
      "responseSnapshot response header modifier",
      "responseSnapshot final response",
      "bodySnapshot response",
    ]);
    assert.equal(stateAt(events, "initial request").request?.path, "/policies/x");
    assert.equal(stateAt(events, "route policies").request?.path, "/rewritten/x");
    assert.equal(stateAt(events, "route policies").request?.headers["x-added"], "1");
    assert.equal(stateAt(events, "final request").request?.headers["x-b"], "3");
    assert.equal(stateAt(events, "raw response").response?.headers["x-answer"], undefined);
    assert.equal(stateAt(events, "final response").response?.headers["x-answer"], "2");
  });

  for (const [path, severity] of [
    ["/", "info"],
    ["/status/403", "warn"],
    ["/status/500", "error"],
  ] as const)
    test(`severity of a call and of the end for ${path}: ${severity}`, async () => {
      const events = await traceOf(gateway, () => call(port, { path }));
      for (const event of events) {
        const rated = event.message.type === "backendCallResult" || event.message.type === "requestFinished";
        assert.equal(event.severity, rated ? severity : "info", event.message.type);
      }
    });

  test("the route that won and those that lost, with reasons", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/policies" }));
    const { selectedRoute, evaluatedRoutes, candidates } = messageOf(events, "routeSelection");
    assert.equal(selectedRoute, `${LISTENER}/default/policies`);
    assert.deepEqual(evaluatedRoutes, [`${LISTENER}/default/plain`, `${LISTENER}/default/policies`]);
    const [won] = candidates;
    assert.deepEqual(
      { ...won, origin: undefined },
      { route: selectedRoute, matched: true, reason: "selected", origin: undefined },
    );
    assert.deepEqual(won?.origin?.path.slice(0, -1), ["binds", 0, "listeners", 0, "routes"]);
    assert.equal(candidates[1]?.matched, true);
    assert.match(candidates[1]?.reason ?? "", /^precedence: /);
  });
});
