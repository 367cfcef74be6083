import assert from "node:assert/strict";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { statusOf } from "../../helpers/raw-peer.ts";
import { SEQUENCE_GET } from "../trace/expected.ts";
import { call, messageOf, sequence, traceOf } from "../trace/support.ts";
import { answer, gatewayTo, H2Server, head, send } from "./support.ts";

const version = "HTTP/2.0" as const;

test("a retry policy retries failures and statuses of HTTP/2 backends, with the body", async () => {
  const bodies: string[] = [];
  using server = await H2Server.start((stream, { "x-retry-attempt": attempt }) => {
    let body = "";
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      body += text;
    });
    stream.on("end", () => {
      bodies.push(body);
      if (attempt === undefined) stream.close(2);
      else if (attempt === "1") stream.respond({ ":status": 503 }, { endStream: true });
      else stream.respond({ ":status": 200 }, { endStream: true });
    });
  });
  const retry = { attempts: 3, codes: [503], backoff: ms(1) };
  await using plane = await gatewayTo(server.port, { policies: { retry } });
  const client = await send(plane, head("POST / HTTP/1.1", "Content-Length: 4"));
  client.send("body");
  assert.equal(statusOf(await client.message()), 200);
  assert.deepEqual(bodies, ["body", "body", "body"]);
  client.socket.destroy();
});

test("policies work on the bodies of HTTP/2 backends", async () => {
  using server = await H2Server.start((stream) => answer(stream, "text", { "content-length": "4" }));
  const transformations = { response: { body: "string(response.body) + ' changed'" } };
  await using gateway = await LocalGateway.start({
    binds: [
      {
        port: 0,
        listeners: [
          {
            routes: [
              {
                policies: { transformations },
                backends: [{ host: `127.0.0.1:${server.port}`, policies: { http: { version } } }],
              },
            ],
          },
        ],
      },
    ],
  });
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`);
  assert.equal(await response.text(), "text changed");
});

test("callouts use the HTTP version of their policies", async () => {
  const asked: string[] = [];
  using authorizer = await H2Server.start((stream, { ":path": path, "x-decision": decision }) => {
    asked.push(`${path} ${decision}`);
    if (asked.length === 1) stream.close(7);
    else stream.respond({ ":status": decision === "no" ? 403 : 200 }, { endStream: true });
  });
  const extAuthz = {
    host: `127.0.0.1:${authorizer.port}`,
    protocol: { http: {} },
    includeRequestHeaders: ["x-decision"],
    policies: { http: { version } },
  };
  const policies = { extAuthz, directResponse: { status: 200, body: "in" } };
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ policies }] }] }] });
  const get = (decision: string) =>
    fetch(`http://127.0.0.1:${gateway.port()}/a`, { headers: { "x-decision": decision } });
  assert.equal(await (await get("yes")).text(), "in");
  assert.equal((await get("no")).status, 403);
  assert.deepEqual(asked, ["/a yes", "/a yes", "/a no"]);
  assert.equal(authorizer.sessions.length, 1);
});

test("trace, access log, dump and metrics show a call to an HTTP/2 backend like any other", async () => {
  using server = await H2Server.start((stream) => answer(stream, "text"));
  const host = `127.0.0.1:${server.port}`;
  const routes = [{ backends: [{ host, policies: { http: { version } } }] }];
  await using gateway = await TestGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const events = await traceOf(gateway, () => call(gateway.port(), { path: "/p" }));
  assert.deepEqual(sequence(events), SEQUENCE_GET);
  assert.equal(messageOf(events, "backendCallStart").target, host);
  assert.equal(messageOf(events, "backendCallResult").status, 200);
  await gateway.until(() => gateway.lines.some((line) => line["http.version"] === "HTTP/1.1"), "the log line");
  const line = gateway.lines.find((each) => each["http.path"] === "/p");
  assert.deepEqual([line?.endpoint, line?.["http.status"]], [host, 200]);
  const metrics = await (await fetch(`${gateway.url("stats")}/metrics`)).text();
  assert.match(metrics, /upstream_connect_duration_seconds_count\{.*\} 1\n/);
});
