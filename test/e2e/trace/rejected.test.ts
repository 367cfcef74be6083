import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, suite, test } from "node:test";
import { invoke } from "../../../src/cli/fixtures/invoke.ts";
import type { TraceEvent } from "../../../src/trace/events.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { byRequest, followed } from "./following.ts";
import { admin, call, messageOf, rawClient, sequence, stateAt, traceOf, Upstream } from "./support.ts";

const TOKEN = "x-tracegate-trace-token";
const HOST = "Host: a.test\r\n";

/** Bytes that the engine rejects before there is a request: what, status, part of the reason, bytes. */
const REFUSED: readonly (readonly [string, number, RegExp, string])[] = [
  ["two Hosts", 400, /more than one Host/, `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`],
  ["no HTTP at all", 400, /method/, "\x16\x03\x01\x02\x00\x01\r\n\r\n"],
  ["a head that stays incomplete", 408, /did not arrive in time/, `GET / HTTP/1.1\r\n${HOST}`],
  ["a body that is too large", 413, /more than 1000 bytes/, `POST / HTTP/1.1\r\n${HOST}Content-Length: 1001\r\n\r\n`],
  ["a long target", 414, /too long/, `GET /${"x".repeat(9000)} HTTP/1.1\r\n${HOST}\r\n`],
  ["an expectation", 417, /100-continue/, `GET / HTTP/1.1\r\n${HOST}Expect: cake\r\n\r\n`],
  ["a large head", 431, /more than/, `GET / HTTP/1.1\r\n${HOST}x-large: ${"x".repeat(70_000)}\r\n\r\n`],
  ["a coding", 501, /transfer coding/, `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n`],
  ["a version", 505, /HTTP\/1\.1/, `GET / HTTP/1.2\r\n${HOST}\r\n`],
];

/** The same over HTTP/2, as stream 1. A malformed request is reset, and 400 stands for that. */
const REFUSED_OVER_HTTP2: readonly (readonly [
  string,
  number,
  RegExp,
  string | undefined,
  (client: H2Client) => void,
])[] = [
  ["no path", 400, /:path/, "PROTOCOL_ERROR", (client) => client.headers(1, [":method", "GET", ":scheme", "http"])],
  [
    "a field of HTTP/1.1",
    400,
    /connection/,
    "PROTOCOL_ERROR",
    (client) => client.request(1, "GET", ["connection", "close"]),
  ],
  [
    "a large body",
    413,
    /more than 1000 bytes/,
    undefined,
    (client) => client.request(1, "POST", ["content-length", "1001"]),
  ],
  ["a long target", 414, /too long/, undefined, (client) => client.request(1, "GET", [], `/${"x".repeat(9000)}`)],
  ["a large head", 431, /too large/, undefined, (client) => client.request(1, "GET", ["x-large", "x".repeat(70_000)])],
  ["an unknown protocol", 501, /websocket/, undefined, (client) => client.request(1, "CONNECT", [":protocol", "x"])],
];

suite("traces of requests that the engine rejects", () => {
  let upstream: Upstream;
  let gateway: TestGateway;
  let port: number;

  before(async () => {
    upstream = await Upstream.start();
    const http = { maxRequestBodySize: 1000, headerReadTimeout: "100ms" };
    gateway = await TestGateway.start({ ...proxyTo(upstream.address), frontendPolicies: { http } });
    port = gateway.port();
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  async function send(text: string): Promise<void> {
    const client = await rawClient(port, text);
    await once(client.resume(), "close");
  }

  for (const [what, status, reason, text] of REFUSED)
    test(`${what}: ${status} with the reason`, async () => {
      const events = await traceOf(gateway, () => send(text));
      assert.deepEqual(sequence(events), ["requestStarted", "requestFinished"]);
      const finished = messageOf(events, "requestFinished");
      assert.equal(finished.status, status);
      assert.match(finished.error ?? "", reason);
      assert.equal(events[1]?.severity, "error");
    });

  for (const [what, status, reason, reset, act] of REFUSED_OVER_HTTP2)
    test(`over HTTP/2, ${what}: ${status} with the reason, in a trace and for a follower`, async () => {
      const send = async (): Promise<void> => {
        const client = await H2Client.connect(port);
        act(client);
        const response = await client.response(1);
        if (reset === undefined) assert.equal(H2Client.status(response), status);
        else assert.equal(response.reset, reset);
        client.peer.end();
      };
      let traced: readonly TraceEvent[] = [];
      const all = await followed(gateway, { count: 1 }, async () => {
        traced = await traceOf(gateway, send);
      });
      for (const events of [traced, byRequest(all).get(1) ?? []]) {
        assert.deepEqual(sequence(events), ["requestStarted", "requestFinished"]);
        const finished = messageOf(events, "requestFinished");
        assert.equal(finished.status, status);
        assert.match(finished.error ?? "", reason);
      }
    });

  test("a watcher with an expression does not match it: there is no request to evaluate", async () => {
    const events = await traceOf(
      gateway,
      async () => {
        await send(`GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`);
        await call(port, { path: "/good" });
      },
      { expression: "true" },
    );
    assert.equal(stateAt(events, "initial request").request?.path, "/good");
  });

  test("its token is found in the received bytes; without one, a watcher with a token continues to wait", async () => {
    const token = "t".repeat(22);
    const signal = AbortSignal.timeout(30_000);
    const other = admin(gateway).trace({ token: "o".repeat(22), signal });
    await other.opened;
    const events = await traceOf(
      gateway,
      async () => {
        await send(`GET /someone HTTP/1.1\r\n${HOST}${HOST}\r\n`);
        await send(`GET / HTTP/1.1\r\n${HOST}X-Tracegate-Trace-Token: ${token}\r\nExpect: cake\r\n\r\n`);
      },
      { token, signal },
    );
    assert.equal(messageOf(events, "requestFinished").status, 417);
    assert.doesNotMatch(JSON.stringify(events) + JSON.stringify(gateway.lines), new RegExp(`${token}|${TOKEN}`));
    other.close();
  });

  const inject = (...request: string[]) => {
    const adminPort = new URL(gateway.url("admin")).port;
    const target = ["--local", "--proxy-admin-port", adminPort, "--port", String(port)];
    return invoke(["proxy", "trace", "--raw", ...target, "--", ...request]);
  };

  test("tgctl shows the trace of its own rejected request", async () => {
    const { code, stdout, stderr } = await inject("http://a.test/", "-H", "Expect: cake");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /"type":"requestFinished","status":417/);
  });

  test("tgctl reports the status that curl got if no event arrives", async () => {
    // The request line is rejected before the header with the token has arrived.
    const { code, stdout, stderr } = await inject(`http://a.test/${"x".repeat(70_000)}`);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^Error: the request got a response with status 414, but no trace event arrived\n/);
    assert.match(stderr, /Try: .*--port/);
  });
});
