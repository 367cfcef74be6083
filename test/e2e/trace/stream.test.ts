import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text as readText } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { bodyAt, call, rawClient, stateAt, traceOf, Upstream } from "./support.ts";

const MIB = 1024 * 1024;
const SECRETS = {
  authorization: "Bearer s3cret-1",
  "proxy-authorization": "Basic s3cret-2",
  cookie: "session=s3cret-3",
  "x-api-key": "s3cret-4",
  "x-custom-token": "s3cret-5",
};

suite("the trace stream", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    upstream.on("/echo", (incoming, response) => incoming.pipe(response));
    upstream.on("/login", (_incoming, response) => {
      response.writeHead(200, { "set-cookie": ["a=s3cret-6", "b=s3cret-7"], "x-custom-token": "s3cret-8" }).end();
    });
    gateway = await TestGateway.start({
      config: { sensitiveHeaders: ["X-Custom-Token"] },
      binds: [
        {
          port: 0,
          listeners: [
            {
              protocol: "HTTP",
              routes: [
                {
                  name: "secret-match",
                  matches: [{ headers: [{ name: "authorization", value: { exact: "Bearer s3cret-9" } }] }],
                  backends: [{ host: upstream.address }],
                },
                {
                  name: "r",
                  policies: { requestHeaderModifier: { set: { "X-Custom-Token": "s3cret-10" } } },
                  backends: [{ host: upstream.address }],
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

  async function openRaw(): Promise<IncomingMessage> {
    const opening = request(`${gateway.url("admin")}/debug/trace`, { method: "POST", agent: false }).end();
    const [stream] = (await once(opening, "response")) as [IncomingMessage];
    return stream;
  }

  test("begins with a comment that says it is ready, is kept alive by comments, and is server-sent events", async () => {
    const stream = await openRaw();
    assert.equal(stream.headers["content-type"], "text/event-stream");
    assert.equal(stream.headers["cache-control"], "no-cache");
    stream.setEncoding("utf8");
    let text = "";
    for await (const chunk of stream) {
      text += String(chunk);
      if (text.includes(": keepalive\n\n")) break;
    }
    assert.match(text, /^: ready\n\n(: keepalive\n\n)+$/);
  });

  test("each event is one data line and a blank line", async () => {
    const stream = await openRaw();
    const [text] = await Promise.all([readText(stream), call(port, { path: "/" })]);
    const blocks = text.split("\n\n").filter((block) => block !== "" && !block.startsWith(":"));
    for (const block of blocks) assert.match(block, /^data: \{.*\}$/);
    assert.ok(blocks.at(-1)?.includes('"requestFinished"'));
  });

  test("values of headers that hold secrets are not shown", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/login", headers: SECRETS }));
    const text = JSON.stringify(events);
    assert.ok(!text.includes("s3cret"), text.slice(Math.max(0, text.indexOf("s3cret") - 200)).slice(0, 300));
    const headers = stateAt(events, "initial request").request?.headers ?? {};
    for (const name of Object.keys(SECRETS)) assert.equal(headers[name], "<redacted>", name);
    assert.equal(stateAt(events, "final response").response?.headers["set-cookie"], "<redacted>");
  });

  test("reveal=true shows them in the snapshots", async () => {
    const events = await traceOf(gateway, () => call(port, { path: "/login", headers: SECRETS }), { reveal: true });
    const headers = stateAt(events, "initial request").request?.headers ?? {};
    for (const [name, value] of Object.entries(SECRETS)) assert.equal(headers[name], value);
    assert.equal(stateAt(events, "final request").request?.headers["x-custom-token"], "s3cret-10");
    assert.equal(stateAt(events, "final response").response?.headers["set-cookie"], "a=s3cret-6, b=s3cret-7");
  });

  for (const [bodies, text] of [
    [4, "0123"],
    ["1KiB", "0123456789"],
    [0, ""],
  ] as const)
    test(`bodies=${bodies} shows that much of each body and marks truncated ones`, async () => {
      const events = await traceOf(gateway, () => call(port, { method: "POST", path: "/echo", body: "0123456789" }), {
        bodies,
      });
      for (const stage of ["final request", "response"])
        assert.deepEqual(bodyAt(events, stage), { text: Buffer.from(text), truncated: text.length < 10 });
    });

  test("by default 2 MiB of a body are shown, without an effect on the request", async () => {
    const body = Buffer.alloc(2 * MIB + 1, "0123456789abcdef");
    const events = await traceOf(gateway, async () => {
      const answer = await call(port, { method: "POST", path: "/echo", body });
      assert.ok(answer.body.equals(body));
    });
    for (const stage of ["final request", "response"]) {
      const { text, truncated } = bodyAt(events, stage);
      assert.equal(text.length, 2 * MIB);
      assert.ok(text.equals(body.subarray(0, 2 * MIB)));
      assert.equal(truncated, true);
    }
  });

  test("an invalid parameter is rejected with the expected values", async () => {
    for (const [query, message] of [
      ["bodies=3MiB", /invalid bodies "3MiB": expected .* at most 2MiB/],
      ["reveal=yes", /invalid reveal "yes": expected true or false/],
    ] as const) {
      const answer = await fetch(`${gateway.url("admin")}/debug/trace?${query}`, { method: "POST" });
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), message);
    }
  });

  test("header names such as constructor are like any others; repeated headers are joined", async () => {
    const head =
      "GET / HTTP/1.1\r\nHost: a.test\r\n__proto__: p\r\nconstructor: c\r\nhasOwnProperty: h\r\nx-two: 1\r\nx-two: 2\r\nConnection: close\r\n\r\n";
    const events = await traceOf(gateway, async () => (await rawClient(port, head)).resume());
    const headers = stateAt(events, "initial request").request?.headers ?? {};
    assert.deepEqual(Object.entries(headers), [
      ["__proto__", "p"],
      ["constructor", "c"],
      ["hasownproperty", "h"],
      ["x-two", "1, 2"],
    ]);
  });
});
