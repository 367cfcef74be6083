import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { type PlaneOptions, TestPlane } from "../../helpers/data-plane.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

const MIB = 1024 * 1024;
const post = (body: string, path = "/"): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const requires = (text: string): PolicySet => ({
  authorization: { rules: [{ mode: "require", expression: text }] },
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

async function answersTo(
  plane: TestPlane,
  request: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const client = await RawPeer.connect(plane.port);
  client.send(request);
  const message = await client.message();
  client.reset();
  return { status: statusOf(message), body: message.body };
}

function secondsOf(plane: TestPlane, route: string): number {
  const found = plane.metrics.snapshot().expression_seconds_total?.find(({ labels }) => labels[0] === route);
  return typeof found?.value === "number" ? found.value : 0;
}

suite("memory of expressions", () => {
  test("the value that a rule has parsed from a body is dropped before the backend responds", async () => {
    await using upstream = await RawUpstream.listen();
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const own: PolicySet = { directResponse: { status: 200, body: "served" } };
    // A value takes 20 times the memory of this body.
    const body = `{"l":[${"{},".repeat(170_000)}{}]}`;
    const options: PlaneOptions = { expressions: { perRequest: 1_000_000, routeShare: 0 } };
    const policies = requires("json(request.body).l.size() > 0");
    await using plane = await TestPlane.start(
      [
        { target, policies },
        { path: "/own", target, policies: own },
      ],
      options,
    );
    collect();
    const before = process.memoryUsage().heapUsed;
    const clients: RawPeer[] = [];
    for (let i = 0; i < 12; i++) {
      const client = await RawPeer.connect(plane.port);
      client.send(post(body));
      // The rule has been evaluated: the request is at the backend.
      await (await upstream.connection(i)).take("{},");
      clients.push(client);
    }
    await new Promise(setImmediate);
    collect();
    const grown = process.memoryUsage().heapUsed - before;
    assert.ok(grown < 20 * MIB, `${Math.round(grown / MIB)} MiB for 12 requests that wait`);
    assert.deepEqual(await answersTo(plane, "GET /own HTTP/1.1\r\nHost: a\r\n\r\n"), { status: 200, body: "served" });
    for (const client of clients) client.reset();
  });

  test("large metadata counts as a buffered body does, and is 503 if there is no room", async () => {
    await using upstream = await RawUpstream.listen();
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const policies: PolicySet = { transformations: { request: { metadata: { all: "json(request.body)" } } } };
    const options: PlaneOptions = { frontend: { maxBufferedBytes: 300_000 } };
    await using plane = await TestPlane.start([{ target, policies }], options);
    const body = `[${"1,".repeat(2500)}1]`;
    const client = await RawPeer.connect(plane.port);
    client.send(post(body));
    await (await upstream.connection()).take(body);
    const held = plane.buffers.used;
    assert.ok(held > 10 * body.length && held < 30 * body.length, String(held));
    const larger = `[${"1,".repeat(9000)}1]`;
    assert.deepEqual(await answersTo(plane, post(larger)), { status: 503, body: "too many buffered bodies" });
    client.reset();
  });
});

suite("processor time of expressions", () => {
  test("the budget rejects JSON that would take too long, whatever it consists of", async () => {
    await using upstream = await RawUpstream.answering(() => reply("reached"));
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    await using plane = await TestPlane.start([{ target, policies: requires("json(request.body).size() > 0") }]);
    const bodies = [
      `[${"{},".repeat(600_000)}{}]`,
      `[${"1234567890123456,".repeat(110_000)}1]`,
      `[1${" ".repeat(1_900_000)}]`,
    ];
    for (const body of bodies) {
      const before = secondsOf(plane, "default/route0");
      assert.equal((await answersTo(plane, post(body))).status, 403);
      const used = secondsOf(plane, "default/route0") - before;
      // The budget, or the actual time on a slow machine.
      assert.ok(used > 0.0009, String(used));
    }
    const text = JSON.stringify({ text: "a".repeat(1_900_000) });
    assert.deepEqual(await answersTo(plane, post(text)), { status: 200, body: "reached" });
  });

  test("a duplicate field in a body denies the request", async () => {
    await using upstream = await RawUpstream.answering(() => reply("reached"));
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const policies: PolicySet = {
      authorization: { rules: [{ mode: "deny", expression: 'json(request.body).role == "admin"' }] },
    };
    await using plane = await TestPlane.start([{ target, policies }]);
    assert.equal((await answersTo(plane, post('{"role":"admin","role":"user"}'))).status, 403);
    assert.equal((await answersTo(plane, post('{"role":"user","other":{"role":"admin"}}'))).status, 200);
  });

  test("the budget of a request is a setting, and bounds the expressions of all its policies together", async () => {
    await using upstream = await RawUpstream.answering((request) => reply(valuesOf(request, "x-n").join() || "none"));
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    const work = "lists.range(3000).size()";
    const policies: PolicySet = {
      ...requires(`int(request.headers["x-start"]) + ${work.replace("3000", "int(request.headers['x-start'])")} > 0`),
      transformations: {
        request: { set: { "x-n": `string(${work.replace("3000", "int(request.headers['x-start'])")})` } },
      },
    };
    for (const [perRequest, answer] of [
      [1000, "3000"],
      [300, "none"],
      [100, "authorization failed"],
    ] as const) {
      await using plane = await TestPlane.start([{ target, policies }], { expressions: { perRequest } });
      const { body } = await answersTo(plane, "GET / HTTP/1.1\r\nHost: a\r\nx-start: 3000\r\n\r\n");
      assert.equal(body, answer, `${perRequest} µs`);
    }
  });

  test("a route whose expressions use more than its share is 503 while others need the worker", async () => {
    await using upstream = await RawUpstream.answering(() => reply("reached"));
    const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
    let now = 0;
    // The event loop is always busy.
    const expressions = { now: () => now, loopTime: () => ({ active: now, idle: 0 }) };
    const heavy: PolicySet = {
      transformations: {
        request: { set: { "x-n": "string(lists.range(10000).size())" } },
        response: { set: { "x-m": "string(lists.range(int(response.code) * 40).size())" } },
      },
    };
    const routes = [
      { path: "/heavy", target, policies: heavy },
      { path: "/other", target },
    ];
    await using plane = await TestPlane.start(routes, { expressions });
    const other = "GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
    const work = "GET /heavy HTTP/1.1\r\nHost: a\r\n\r\n";
    let rejected: { readonly status: number; readonly body: string } | undefined;
    // A tenth of 2 ms a request; 0.5 ms of expressions each.
    for (let i = 0; i < 1000 && rejected === undefined; i++) {
      now += 2;
      if (i % 10 === 0) assert.equal((await answersTo(plane, other)).status, 200);
      const answer = await answersTo(plane, work);
      if (answer.status !== 200) rejected = answer;
    }
    assert.deepEqual(rejected, {
      status: 503,
      body: "the expressions of the route use more than its share of the processor",
    });
    const before = secondsOf(plane, "default/route0");
    const client = await RawPeer.connect(plane.port);
    client.send(work);
    const message = await client.message();
    assert.deepEqual([statusOf(message), valuesOf(message, "retry-after"), valuesOf(message, "x-m")], [503, ["1"], []]);
    assert.equal(secondsOf(plane, "default/route0"), before, "expressions for the response do not run either");
    assert.equal((await answersTo(plane, other)).status, 200);
    assert.equal((await plane.logged('"http.status":503')).route, "default/route0");
    now += 60_000;
    assert.equal((await answersTo(plane, work)).status, 200);
    client.reset();
  });
});
