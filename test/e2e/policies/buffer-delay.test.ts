import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TestGateway } from "../../helpers/gateway.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { RawPeer, RawUpstream, reply, statusOf, valuesOf } from "../../helpers/raw-peer.ts";

let upstream: RawUpstream;
let gateway: TestGateway;

before(async () => {
  upstream = await RawUpstream.answering((request) =>
    reply(request.body, [`X-Expect: ${valuesOf(request, "expect")}`]),
  );
  const backends = [{ host: `127.0.0.1:${upstream.port}` }];
  const at = (pathPrefix: string, policies: object) => ({ matches: [{ path: { pathPrefix } }], policies, backends });
  const routes = [
    at("/request", { buffer: { request: { maxBytes: 10 } } }),
    at("/response", { buffer: { response: { maxBytes: 10 } } }),
    at("/open", {
      buffer: {
        request: { maxBytes: 10, failureMode: "failOpen" },
        response: { maxBytes: 10, failureMode: "failOpen" },
      },
    }),
    at("/late", { delay: { duration: "1h" }, timeout: { requestTimeout: "50ms" } }),
    at("/body", {
      delay: { duration: 'string(request.body) == "xx" ? duration("1h") : duration("0s")' },
      timeout: { requestTimeout: "50ms" },
    }),
    at("/soon", { delay: { duration: 'request.method == "PUT" ? duration("1h") : duration("1ms")' } }),
  ];
  gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
});
after(async () => {
  await gateway.stop();
  await upstream[Symbol.asyncDispose]();
});

async function post(path: string, length: number): Promise<{ status: number; body: string }> {
  const init = { method: "POST", body: "x".repeat(length) };
  const response = await fetch(`http://127.0.0.1:${gateway.port()}${path}`, init);
  return { status: response.status, body: await response.text() };
}

test("buffer: a body that is too long is rejected, or streams on", async () => {
  for (const path of ["/request", "/response", "/open"])
    assert.deepEqual(await post(path, 10), { status: 200, body: "x".repeat(10) });
  assert.deepEqual(await post("/request", 11), { status: 413, body: "" });
  assert.deepEqual(await post("/response", 11), { status: 502, body: "" });
  const tooLong =
    "response content too large: the response body is longer than 10 bytes (maxBytes, or else maxBufferSize)";
  const place = "binds[0].listeners[0].routes[1].policies.buffer";
  const line = (): unknown => gateway.lines.find((each) => each["http.status"] === 502)?.error;
  await gateway.until(() => line() !== undefined, "the line of the response");
  assert.equal(line(), `${tooLong}, at ${place}`);
  assert.deepEqual(await post("/open", 300_000), { status: 200, body: "x".repeat(300_000) });
});

test("buffer: a client that waits for 100 before its body gets it once, without another of the upstream", async () => {
  const client = await RawPeer.connect(gateway.port());
  client.send("POST /request HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  assert.equal(statusOf(await client.message()), 100);
  client.send("body");
  const response = await client.message();
  assert.deepEqual([response.body, valuesOf(response, "x-expect")], ["body", [""]]);
  client.send("POST /request HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  assert.equal(statusOf(await client.message()), 413, "without its body");
  client.socket.destroy();

  const http2 = await H2Client.connect(gateway.port());
  http2.request(1, "POST", ["expect", "100-continue"], "/request");
  await http2.until(() => http2.stream(1).sections.length === 1, "100");
  assert.equal(H2Client.status(http2.stream(1)), 100);
  http2.data(1, "body");
  assert.equal((await http2.response(1)).body, "body");
  http2.peer.socket.destroy();
});

test("delay: counts toward the timeout of the request, and may be an expression", async () => {
  assert.equal((await post("/late", 1)).status, 504);
  assert.deepEqual(await post("/soon", 3), { status: 200, body: "xxx" });
  assert.equal((await post("/body", 2)).status, 504);
});
