import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { SEQUENCE_GET } from "./expected.ts";
import { admin, call, closedPort, messageOf, rawClient, sequence, stateAt, traceOf, Upstream } from "./support.ts";

const LISTENER = "default/default/bind/0/listener0";
const BEFORE_ROUTE = SEQUENCE_GET.slice(0, 5);
const UNTIL_CALL = SEQUENCE_GET.slice(0, 10);
const ANSWERED = ["responseSnapshot final response", "bodySnapshot response", "requestFinished"];

suite("traces of requests that do not reach a backend, or get no response from it", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/hang", () => {});
    const backends = [{ host: upstream.address }];
    const at = (name: string, rest: object) => ({ name, matches: [{ path: { pathPrefix: `/${name}` } }], ...rest });
    gateway = await TestGateway.start({
      routeGroups: [{ name: "inner", routes: [at("group/leaf", { name: "leaf", backends })] }],
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "HTTP",
              hostname: "a.test",
              routes: [
                at("up", { backends, policies: { urlRewrite: { path: { prefix: "/" } } } }),
                at("refused", { backends: [{ host: `127.0.0.1:${await closedPort()}` }] }),
                at("request-timeout", {
                  backends,
                  policies: { timeout: { requestTimeout: "100ms" }, urlRewrite: { path: { full: "/hang" } } },
                }),
                at("call-timeout", {
                  backends,
                  policies: { timeout: { backendRequestTimeout: "100ms" }, urlRewrite: { path: { full: "/hang" } } },
                }),
                at("direct", { policies: { directResponse: { status: 418, body: "short and stout" } } }),
                at("redirect", { policies: { requestRedirect: { path: { full: "/elsewhere" }, status: 301 } } }),
                at("nowhere", {}),
                at("group", { backends: [{ routeGroup: "inner" }] }),
                {
                  name: "by-header",
                  matches: [{ path: { exact: "/h" }, headers: [{ name: "x-a", value: { exact: "1" } }] }],
                  backends,
                },
                { name: "by-method", matches: [{ path: { exact: "/m" }, method: "PUT" }], backends },
                { name: "other-host", hostnames: ["b.a.test"], backends },
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

  test("no listener for the host: 404, and the trace ends", async () => {
    const events = await traceOf(gateway, async () => {
      const { status, body } = await call(port, { headers: { host: "unknown.test" } });
      assert.equal(status, 404);
      assert.match(body.toString(), /^listener not found/);
    });
    assert.deepEqual(sequence(events), [...SEQUENCE_GET.slice(0, 2), "routeSelection", ...ANSWERED]);
    const { selectedRoute, listeners } = messageOf(events, "routeSelection");
    assert.equal(selectedRoute, null);
    assert.deepEqual(listeners?.[0], {
      listener: LISTENER,
      name: "listener0",
      reason: "host: unknown.test does not match a.test",
      origin: { path: ["binds", 0, "listeners", 0] },
    });
    assert.equal(events[2]?.severity, "error");
    const { status, error } = messageOf(events, "requestFinished");
    assert.equal(status, 404);
    assert.match(error ?? "", /listener not found/);
    assert.equal(events.at(-1)?.severity, "error");
  });

  test("no route: 404 with the reason for each route", async () => {
    const events = await traceOf(gateway, async () => {
      const { status, body } = await call(port, { path: "/h", headers: { "x-a": "2" } });
      assert.equal(status, 404);
      assert.match(body.toString(), /^route not found/);
    });
    assert.deepEqual(sequence(events), [...BEFORE_ROUTE, ...ANSWERED]);
    const { selectedRoute, candidates } = messageOf(events, "routeSelection");
    assert.equal(selectedRoute, null);
    assert.equal(events[4]?.severity, "error");
    const reasons = Object.fromEntries(
      candidates.map(({ route, reason }) => [route.slice(`${LISTENER}/default/`.length), reason]),
    );
    assert.equal(candidates[0]?.route, `${LISTENER}/default/by-header`);
    assert.match(reasons["by-header"] ?? "", /^header x-a: "2" is not "1"/);
    assert.match(reasons["by-method"] ?? "", /^path: \/h is not exactly \/m/);
    assert.match(reasons["other-host"] ?? "", /^host: a\.test does not match b\.a\.test/);
    assert.ok(candidates.every(({ matched }) => !matched));
  });

  test("a wrong method is the reported reason", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/m" }));
    const { candidates } = messageOf(events, "routeSelection");
    assert.match(candidates[0]?.reason ?? "", /^method: GET is not PUT/);
  });

  test("a route without backends: 500", async () => {
    const events = await traceOf(gateway, async () =>
      assert.equal((await call(port, { path: "/nowhere" })).status, 500),
    );
    assert.deepEqual(sequence(events), [...SEQUENCE_GET.slice(0, 7), ...ANSWERED]);
  });

  test("a direct response: no backend events", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/direct" }));
    const [first, ...rest] = sequence(events).slice(5);
    assert.equal(first, "policySelection route");
    assert.deepEqual(
      rest.filter((each) => each !== "policy"),
      ["requestSnapshot direct response", ...ANSWERED],
    );
    assert.equal(stateAt(events, "final response").response?.code, 418);
    assert.equal(messageOf(events, "requestFinished").error, null);
    assert.equal(events.at(-1)?.severity, "warn");
  });

  test("a redirect", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/redirect?q=1" }));
    assert.deepEqual(
      sequence(events)
        .slice(5)
        .filter((each) => each !== "policy"),
      [
        "policySelection route",
        "requestSnapshot request redirect",
        "responseSnapshot final response",
        "requestFinished",
      ],
    );
    const { response } = stateAt(events, "final response");
    assert.equal(response?.code, 301);
    assert.equal(response?.headers.location, "http://a.test/elsewhere?q=1");
    assert.equal(messageOf(events, "requestFinished").status, 301);
  });

  test("a refused connection: 503, the result of the call has the error", async () => {
    const events = await traceOf(gateway, async () =>
      assert.equal((await call(port, { path: "/refused" })).status, 503),
    );
    assert.deepEqual(sequence(events), [...UNTIL_CALL, "backendCallResult", ...ANSWERED]);
    const { status, error } = messageOf(events, "backendCallResult");
    assert.equal(status, null);
    assert.match(error ?? "", /refused/i);
    assert.equal(events[UNTIL_CALL.length]?.severity, "error");
    assert.equal(messageOf(events, "requestFinished").status, 503);
  });

  for (const path of ["/request-timeout", "/call-timeout"])
    test(`${path}: 504, the call ends before the response begins`, async () => {
      const events = await traceOf(gateway, async () => assert.equal((await call(port, { path })).status, 504));
      const without = sequence(events).filter((each) => each !== "policy" && each !== "requestSnapshot url rewrite");
      assert.deepEqual(without, [...UNTIL_CALL, "backendCallResult", ...ANSWERED]);
      const { status, error } = messageOf(events, "backendCallResult");
      assert.equal(status, null);
      assert.match(error ?? "", /timeout/);
      assert.equal(messageOf(events, "requestFinished").status, 504);
    });

  test("a backend that hangs: the stream shows everything up to the call; a client that leaves ends the trace", async () => {
    const hanging = upstream.hang("/quiet");
    const stream = admin(gateway).trace({ signal: AbortSignal.timeout(30_000) });
    await stream.opened;
    const client = await rawClient(port, "GET /up/quiet HTTP/1.1\r\nHost: a.test\r\n\r\n");
    const events: TraceEvent[] = [];
    for await (const { raw } of stream) {
      events.push(JSON.parse(raw) as TraceEvent);
      if (events.at(-1)?.message.type !== "backendCallStart") continue;
      const { request } = await hanging;
      const upstreamSawIt = once(request.socket, "close");
      client.destroy();
      await upstreamSawIt;
    }
    const seen = sequence(events).filter((each) => each !== "policy" && each !== "requestSnapshot url rewrite");
    assert.deepEqual(seen, [...UNTIL_CALL, "backendCallResult", "requestFinished"]);
    assert.deepEqual(messageOf(events, "requestFinished"), {
      type: "requestFinished",
      status: null,
      error: "client closed the connection",
    });
    assert.match(messageOf(events, "backendCallResult").error ?? "", /client closed the connection/);
  });

  test("a client that leaves during the response body", async () => {
    const client = upstream.hang("/endless").then(async ({ response }) => {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("the beginning");
    });
    const events = await traceOf(gateway, async () => {
      const socket = await rawClient(port, "GET /up/endless HTTP/1.1\r\nHost: a.test\r\n\r\n");
      await client;
      let text = "";
      for await (const chunk of socket) {
        text += String(chunk);
        if (text.includes("the beginning")) break;
      }
      socket.destroy();
    });
    assert.equal(events.at(-1)?.message.type, "requestFinished");
    assert.equal(messageOf(events, "requestFinished").status, 200);
    assert.match(messageOf(events, "requestFinished").error ?? "", /client closed the connection/);
    const body = events.find(({ message }) => message.type === "bodySnapshot")?.message;
    assert.deepEqual(body, {
      type: "bodySnapshot",
      stage: "response",
      body: Buffer.from("the beginning").toString("base64"),
    });
  });

  test("a backend that dies during its body: the last event has the error, and the snapshot the bytes so far", async () => {
    const dying = upstream.hang("/dying").then(({ response }) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("half", () => response.destroy());
    });
    const events = await traceOf(gateway, async () => {
      await assert.rejects(call(port, { path: "/up/dying" }));
      await dying;
    });
    assert.equal(messageOf(events, "backendCallResult").status, 200);
    const { status, error } = messageOf(events, "requestFinished");
    assert.equal(status, 200);
    assert.match(error ?? "", /upstream call failed/);
    assert.equal(events.at(-1)?.severity, "error");
    const body = events.find(({ message }) => message.type === "bodySnapshot")?.message;
    assert.equal(body?.type === "bodySnapshot" && body.body, Buffer.from("half").toString("base64"));
  });

  test("a route group: one routeSelection for each level, the last names the leaf", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/group/leaf" }));
    const selected = events.flatMap(({ message }) =>
      message.type === "routeSelection" ? [message.selectedRoute] : [],
    );
    assert.equal(selected.length, 2);
    assert.equal(selected[0], `${LISTENER}/default/group`);
    assert.match(selected[1] ?? "", /inner.*leaf/);
    assert.equal(messageOf(events, "requestFinished").status, 200);
  });

  test("a route group without a matching route: 404 after both levels", async () => {
    const events = await traceOf(gateway, async () =>
      assert.equal((await call(port, { path: "/group/x" })).status, 404),
    );
    const selected = events.flatMap(({ message }) =>
      message.type === "routeSelection" ? [message.selectedRoute] : [],
    );
    assert.deepEqual(selected, [`${LISTENER}/default/group`, null]);
  });
});
