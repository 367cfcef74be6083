import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import type { TraceStream } from "../../../src/admin/client/client.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { admin, call, messageOf, rawClient, sequence, stateAt, traceOf, Upstream } from "./support.ts";

/** Of the gateway: how many traces may wait at once. */
const MAX_WATCHERS = 32;

suite("which request is traced, with two workers", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    const backends = [{ host: upstream.address }];
    const on = (name: string, path: string): object => ({ name, matches: [{ path: { pathPrefix: path } }], backends });
    const outer = { ...on("outer", "/inner"), backends: [{ routeGroup: "inner" }] };
    gateway = await TestGateway.start({
      config: { workerThreads: 2 },
      binds: [{ port: 0, listeners: [{ routes: [{ name: "r", backends }, outer] }] }],
      routeGroups: [{ name: "inner", routes: [on("leaf", "/inner/leaf"), on("other", "/inner/other")] }],
    });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const burst = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => call(port, { path: `/burst/${index}` })));

  test("one watcher, many requests at once on all workers: one trace", async () => {
    for (let round = 0; round < 5; round++) {
      const events = await traceOf(gateway, () => burst(40));
      assert.equal(messageOf(events, "requestStarted").type, "requestStarted");
      assert.equal(messageOf(events, "requestFinished").status, 200);
    }
  });

  test("many watchers take different requests, each exactly one", async () => {
    const streams = await open(12);
    const collected = streams.map(collect);
    await burst(40);
    const traces = await Promise.all(collected);
    const paths = traces.map((events) => stateAt(events, "initial request").request?.path);
    assert.equal(new Set(paths).size, 12, paths.join(" "));
    for (const events of traces) assert.equal(messageOf(events, "requestFinished").status, 200);
  });

  test("a request is traced on any worker", async () => {
    const clients = new Map<string, Socket>();
    const all: Socket[] = [];
    while (clients.size < 2 && all.length < 200) {
      const socket = await rawClient(port, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
      all.push(socket);
      await once(socket, "data");
      clients.set(await workerOf(socket), socket);
    }
    assert.equal(clients.size, 2);
    for (const [worker, socket] of [...clients, ...clients]) {
      const events = await traceOf(gateway, () => socket.write(`GET /on/${worker} HTTP/1.1\r\nHost: a.test\r\n\r\n`));
      assert.equal(stateAt(events, "initial request").request?.path, `/on/${worker}`);
      assert.equal(stateAt(events, "initial request").source?.port, socket.localPort);
    }
    for (const socket of all) socket.destroy();
  });

  test("a watcher that has left takes no request; watchers over the limit are rejected", async () => {
    const fillers = await open(MAX_WATCHERS - 1, 'request.path == "/never"');
    const [leaving] = await open(1);
    await assert.rejects(admin(gateway).trace().opened, /32 traces are open already/);
    assert.equal((await fetch(`${gateway.url("admin")}/debug/trace`)).status, 503);
    leaving?.close();
    // Its slot becomes free once the gateway has detected that.
    const next = await retry(() => open(1));
    const trace = collect(next[0] as TraceStream);
    await call(port, { path: "/first" });
    assert.equal(stateAt(await trace, "initial request").request?.path, "/first");
    for (const filler of fillers) filler.close();
  });

  test("an expression chooses among the requests; those it rejects are left to others", async () => {
    const [picky] = await open(
      1,
      'request.method == "PUT" && request.path.startsWith("/api/") && "x-a" in request.headers',
    );
    const [never] = await open(1, 'request.path == "/never"');
    const pickyTrace = collect(picky as TraceStream);
    for (const path of ["/other", "/api/x"]) {
      const events = await traceOf(gateway, () => call(port, { path, headers: { "x-a": "1" } }));
      assert.equal(stateAt(events, "initial request").request?.path, path);
    }
    await call(port, { method: "PUT", path: "/api/x" });
    await call(port, { method: "PUT", path: "/api/y", headers: { "x-a": "1" } });
    const events = await pickyTrace;
    assert.equal(stateAt(events, "initial request").request?.path, "/api/y");
    never?.close();
    assert.deepEqual(await collect(never as TraceStream), []);
  });

  test("a route chooses among the requests that fit the expression, also in a route group", async () => {
    const trace = admin(gateway).trace({ route: "leaf", expression: 'request.method == "GET"' });
    await trace.opened;
    const collected = collect(trace);
    for (const path of ["/inner/other", "/leaf"]) await call(port, { path });
    await call(port, { method: "PUT", path: "/inner/leaf" });
    await call(port, { path: "/inner/leaf" });
    const events = await collected;
    assert.equal(stateAt(events, "initial request").request?.path, "/inner/leaf");
    const chosen = events.flatMap(({ message }) => (message.type === "routeSelection" ? [message] : []));
    assert.deepEqual(
      chosen.map(({ selectedRoute }) => selectedRoute?.split("/").at(-1)),
      ["outer", "leaf"],
    );
    assert.deepEqual(
      chosen[1]?.candidates.map(({ reason }) => reason),
      ["selected", "path: /inner/leaf is not under prefix /inner/other"],
    );
    for (const query of ["route=leaf&reveal=true", `route=leaf&token=${"a".repeat(22)}`])
      assert.equal((await fetch(`${gateway.url("admin")}/debug/trace?${query}`)).status, 400);
  });

  test("an invalid expression is rejected with the position of the mistake, by POST and GET", async () => {
    const query = new URLSearchParams({ expression: 'request.path == "/a" &&& true' });
    for (const method of ["POST", "GET"]) {
      const answer = await fetch(`${gateway.url("admin")}/debug/trace?${query}`, { method });
      const text = await answer.text();
      assert.equal(answer.status, 400);
      assert.match(text, /^invalid expression: /);
      const lines = text.split("\n");
      const caret = lines.find((line) => /^[\s|]*\^/.test(line));
      assert.ok(caret !== undefined, text);
    }
  });

  test("GET works like POST", async () => {
    const query = new URLSearchParams({ expression: 'request.path == "/by-get"' });
    const response = await fetch(`${gateway.url("admin")}/debug/trace?${query}`);
    assert.equal(response.status, 200);
    await call(port, { path: "/not-me" });
    await call(port, { path: "/by-get" });
    const text = await response.text();
    const events = text
      .split("\n")
      .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as TraceEvent] : []));
    assert.equal(sequence(events).at(-1), "requestFinished");
    assert.equal(stateAt(events, "initial request").request?.path, "/by-get");
  });

  async function open(count: number, expression?: string): Promise<TraceStream[]> {
    const signal = AbortSignal.timeout(60_000);
    const streams = Array.from({ length: count }, () => admin(gateway).trace({ expression, signal }));
    await Promise.all(streams.map((stream) => stream.opened));
    return streams;
  }

  /** Name of the thread that has the connection of a client. */
  async function workerOf(socket: Socket): Promise<string> {
    const { workload } = (await admin(gateway).tasks()) as { workload: Record<string, unknown> };
    const entry = Object.entries(workload).find(([, task]) => JSON.stringify(task).includes(`:${socket.localPort}"`));
    return entry?.[0] ?? "none";
  }
});

async function collect(stream: TraceStream): Promise<TraceEvent[]> {
  const events: TraceEvent[] = [];
  for await (const { raw } of stream) events.push(JSON.parse(raw) as TraceEvent);
  return events;
}

/** Tries again, for at most 30 s, as long as it fails. */
async function retry<T>(act: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}
