import assert from "node:assert/strict";
import { text as readText } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import type { FollowRequest } from "../../../src/admin/client/client.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { byRequest, type Followed, followed, noticesOf } from "./following.ts";
import { admin, call, messageOf, rawClient, sequence, stateAt, traceOf, Upstream } from "./support.ts";

const pathsOf = (events: readonly Followed[]): (string | undefined)[] =>
  [...byRequest(events).values()].map((each) => stateAt(each, "initial request").request?.path);

suite("following requests, with two workers", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/api/broken", (_request, response) => {
      response.statusCode = 500;
      response.end("broken");
    });
    gateway = await TestGateway.start({ ...proxyTo(upstream.address), config: { workerThreads: 2 } });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const follow = (request: FollowRequest, act: () => unknown) => followed(gateway, request, act);

  const burst = (count: number, path = "/burst") =>
    Promise.all(Array.from({ length: count }, (_, index) => call(port, { path: `${path}/${index}` })));

  test("as many requests as asked for, from all workers, each whole and under its own number", async () => {
    const events = await follow({ count: 12 }, () => burst(40));
    const requests = byRequest(events);
    assert.deepEqual(
      [...requests.keys()].sort((a, b) => a - b),
      Array.from({ length: 12 }, (_, index) => index + 1),
    );
    for (const each of requests.values()) {
      assert.equal(each[0]?.message.type, "requestStarted");
      assert.equal(sequence(each).at(-1), "requestFinished");
      assert.equal(messageOf(each, "requestFinished").status, 200);
    }
    assert.equal(new Set(pathsOf(events)).size, 12);
    assert.deepEqual(noticesOf(events), [{ type: "followEnded", reason: "count", requests: 12, unfinished: 0 }]);
    assert.equal(events.at(-1)?.message.type, "followEnded");
  });

  test("20 requests, unless more are asked for", async () => {
    assert.equal(byRequest(await follow({}, () => burst(30))).size, 20);
  });

  test("ends when its time is over, and says what continues", async () => {
    const hung = upstream.hang("/hangs");
    let answered: Promise<unknown> = Promise.resolve();
    const events = await follow({ for: "3s" }, async () => {
      answered = call(port, { path: "/hangs" });
      await hung;
    });
    assert.deepEqual(noticesOf(events), [{ type: "followEnded", reason: "time", requests: 1, unfinished: 1 }]);
    const shown = sequence(byRequest(events).get(1) ?? []);
    assert.ok(shown.includes("backendCallStart"), "as far as the request has come");
    assert.ok(!shown.includes("requestFinished"));
    (await hung).response.end();
    await answered;
  });

  test("an expression chooses at the start of a request", async () => {
    const events = await follow({ count: 2, expression: 'request.path.startsWith("/api/")' }, async () => {
      for (const path of ["/a", "/api/1", "/b", "/api/2", "/c"]) await call(port, { path });
    });
    // Those of different workers may arrive the other way round.
    assert.deepEqual(pathsOf(events).sort(), ["/api/1", "/api/2"]);
  });

  test("where chooses by what became of a request, with the names of the recorder", async () => {
    const wheres = [
      "response.code >= 500",
      'response.code == 500 && request.path == "/api/broken" && duration < duration("1m") && route != ""',
    ];
    for (const where of wheres) {
      const events = await follow({ count: 1, where }, async () => {
        for (const path of ["/a", "/api/ok", "/api/broken"]) await call(port, { path });
      });
      assert.deepEqual(pathsOf(events), ["/api/broken"], where);
      const all = byRequest(events).get(1) ?? [];
      assert.equal(all[0]?.message.type, "requestStarted", "what came before the outcome is shown too");
      assert.equal(messageOf(all, "requestFinished").status, 500);
      const { records } = await admin(gateway).requests({ where, limit: 1 });
      assert.equal(records[0]?.path, "/api/broken", "the recorder finds the same");
    }
  });

  test("several follow one request, and a trace takes it too, each with what it asked for", async () => {
    let traced: readonly TraceEvent[] = [];
    const one = { count: 1, expression: 'request.path == "/shared"' };
    let second: Followed[] = [];
    const first = await follow({ ...one, bodies: 3, candidates: true }, async () => {
      second = await follow(one, async () => {
        traced = await traceOf(gateway, () => call(port, { path: "/shared" }), { bodies: 4 });
      });
    });
    const [detailed, plain] = [first, second].map((events) => byRequest(events).get(1) ?? []);
    assert.ok(detailed !== undefined && plain !== undefined);
    const requestsOf = [traced, detailed, plain].map((events) => stateAt(events, "initial request").source?.port);
    assert.equal(new Set(requestsOf).size, 1, "the same request");
    for (const events of [detailed, plain]) assert.deepEqual(sequence(events), sequence(traced));
    const bodies = [traced, detailed, plain].map((events) =>
      Buffer.from(messageOf(events, "bodySnapshot").body, "base64").toString(),
    );
    assert.deepEqual(bodies, ["hell", "hel", ""]);
    assert.ok(messageOf(detailed, "routeSelection").evaluatedRoutes.length > 0);
    assert.deepEqual(messageOf(detailed, "routeSelection"), messageOf(traced, "routeSelection"));
  });

  test("each of several who follow at the same time sees what its own filter chooses, and so does a trace", async () => {
    const filters: readonly FollowRequest[] = [
      { count: 2, expression: 'request.path.startsWith("/api/")' },
      { count: 1, where: "response.code == 500" },
      { count: 1, expression: 'request.method == "PUT"', where: "response.code == 200" },
    ];
    const seen: (string | undefined)[][] = [];
    let traced: readonly TraceEvent[] = [];
    const nested = async ([filter, ...others]: readonly FollowRequest[]): Promise<void> => {
      if (filter !== undefined) {
        const events = await follow(filter, () => nested(others));
        seen.unshift(pathsOf(events));
        return;
      }
      traced = await traceOf(
        gateway,
        async () => {
          for (const [method, path] of [
            ["GET", "/other"],
            ["PUT", "/api/put"],
            ["GET", "/api/broken"],
          ] as const)
            await call(port, { method, path });
        },
        { expression: 'request.path == "/api/broken"' },
      );
    };
    await nested(filters);
    assert.deepEqual(
      seen.map((paths) => paths.sort()),
      [["/api/broken", "/api/put"], ["/api/broken"], ["/api/put"]],
    );
    assert.equal(stateAt(traced, "initial request").request?.path, "/api/broken");
  });

  test("without candidates, a route selection has the selected route alone", async () => {
    const [event] = byRequest(await follow({ count: 1 }, () => call(port, { path: "/" }))).values();
    const selection = messageOf(event ?? [], "routeSelection");
    assert.notEqual(selection.selectedRoute, null);
    assert.deepEqual(selection.evaluatedRoutes, []);
    assert.deepEqual(
      selection.candidates.map(({ route, reason }) => [route, reason]),
      [[selection.selectedRoute, "selected"]],
    );
  });

  test("what a trace reveals, a follower of the same request does not see", async () => {
    const headers = { authorization: "Bearer secret-of-alice" };
    let traced: readonly TraceEvent[] = [];
    const events = await follow({ count: 1, candidates: true, bodies: "4KiB" }, async () => {
      traced = await traceOf(gateway, () => call(port, { path: "/revealed", headers }), { reveal: true });
    });
    assert.match(JSON.stringify(traced), /secret-of-alice/);
    assert.doesNotMatch(JSON.stringify(events), /secret-of-alice/);
    const shown = byRequest(events).get(1) ?? [];
    assert.deepEqual(sequence(shown), ["requestStarted", "dropped", "requestFinished"]);
    assert.equal(messageOf(shown, "dropped").count, traced.length - 2);
    assert.equal(messageOf(shown, "requestFinished").status, 200);
  });

  test("a request that the parser refuses is followed too, also by its outcome", async () => {
    for (const where of [undefined, 'error != "" && response.code == 400']) {
      const events = await follow({ count: 1, where }, async () => {
        await readText(await rawClient(port, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"));
      });
      const [refused] = byRequest(events).values();
      assert.deepEqual(sequence(refused ?? []), ["requestStarted", "requestFinished"]);
      assert.equal(messageOf(refused ?? [], "requestFinished").status, 400);
    }
  });

  test("a stream that broke off goes on behind any event whose id the client sends", async () => {
    const url = `${gateway.url("admin")}/debug/follow?count=2`;
    const left = new AbortController();
    const first = await fetch(url, { signal: left.signal });
    await call(port, { path: "/resumed/1" });
    let text = "";
    for await (const piece of first.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.includes('"requestFinished"')) break;
    }
    left.abort();
    const ids = [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => id ?? "");
    assert.equal(new Set(ids).size, ids.length);
    const events = [...text.matchAll(/^data: .+$/gm)].map(([line]) => line);
    assert.ok(events.length > 10);
    // The first id comes before the first event.
    assert.equal(ids.length, events.length + 1);
    await call(port, { path: "/resumed/2" });
    const rest = async (from: number) => {
      const response = await fetch(url, { headers: { "last-event-id": ids[from] ?? "" } });
      return [response.status, await response.text()] as const;
    };
    const [, all] = await rest(0);
    assert.deepEqual(
      [...all.matchAll(/^data: .+$/gm)].slice(0, events.length).map(([line]) => line),
      events,
    );
    const [, last] = await rest(events.length);
    assert.equal(last.match(/^data: .+$/gm)?.length, (all.match(/^data: .+$/gm)?.length ?? 0) - events.length);
    assert.match(last, /resumed\/2[\s\S]*"followEnded","reason":"count","requests":2/);
    assert.doesNotMatch(last, /resumed\/1/);
    const end =
      last
        .match(/^id: .+$/gm)
        ?.at(-1)
        ?.slice(4) ?? "";
    ids.push(end, "0123456789ab-1-0");
    for (const over of [ids.length - 2, ids.length - 1]) {
      const [status, message] = await rest(over);
      assert.deepEqual([status, message.split(":")[0]], [410, "no stream goes on after this Last-Event-ID"]);
    }
  });

  test("wrong parameters are rejected with what is right, and the place in an expression", async () => {
    const wrong: Readonly<Record<string, RegExp>> = {
      "where=response.code >>= 500": /^where: [\s\S]*response\.code >>= 500\n\s*\^ line 1, column 16/,
      "where=nothing == 1": /^where: [\s\S]*nothing/,
      "expression=request.path ==": /^invalid expression: [\s\S]*\^/,
      "count=0": /^invalid count "0": expected an integer from 1 to 1000000\n$/,
      "for=2h": /^invalid for "2h": expected a duration such as 30s, at most 1h\n$/,
      "bodies=1MiB": /^invalid bodies "1MiB": expected bytes or a size such as 4KiB, at most 64KiB\n$/,
      "candidates=yes": /^invalid candidates "yes": expected true or false\n$/,
      "reveal=true": /reveal/,
    };
    for (const [query, message] of Object.entries(wrong)) {
      const [name = "", ...value] = query.split("=");
      const words = new URLSearchParams({ [name]: value.join("=") });
      const answer = await fetch(`${gateway.url("admin")}/debug/follow?${words}`);
      assert.equal(answer.status, 400, query);
      assert.match(await answer.text(), message);
    }
  });

  test("a reader that stands still: every event arrives or is counted", async () => {
    const reader = await rawClient(
      Number(new URL(gateway.url("admin")).port),
      "POST /debug/follow?count=1000&bodies=64KiB HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    await new Promise((resolve) => reader.once("readable", resolve));
    assert.match(String(reader.read()), /^HTTP\/1\.1 200 .*: ready/s);
    upstream.on("/large", (_request, response) => response.end(Buffer.alloc(64 * 1024, "x")));
    for (let round = 0; round < 25; round++)
      await Promise.all(Array.from({ length: 40 }, () => call(port, { path: "/large" })));
    const events = (await readText(reader))
      .split("\n")
      .flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Followed] : []));
    const dropped = noticesOf(events).flatMap((message) => (message.type === "dropped" ? [message.count] : []));
    assert.ok(dropped.length > 0);
    const whole = byRequest(events).get(1)?.length ?? 0;
    const arrived = events.filter(({ request }) => request !== null).length;
    // Requests that take longer than a second have events about their progress too.
    assert.ok(arrived + dropped.reduce((sum, count) => sum + count, 0) >= 1000 * whole);
    assert.deepEqual(events.at(-1)?.message, { type: "followEnded", reason: "count", requests: 1000, unfinished: 0 });
  });
});
