import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPlane } from "../../helpers/data-plane.ts";
import { TestGateway } from "../../helpers/gateway.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { TestCollector } from "../../helpers/otlp/collector.ts";
import { attributesOf } from "../../helpers/otlp/decode.ts";
import { RawPeer, RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { gatewayTo } from "../upstream-h2/support.ts";

const GRPC = "content-type: application/grpc";
const CHUNKED = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${GRPC}\r\n\r\n1\r\nx\r\n0\r\n`;

/** A backend that sends the status in the way that the path names. */
function backend(): Promise<RawUpstream> {
  return RawUpstream.answering(({ start }) => {
    if (start.includes("/trailers")) return `${CHUNKED}grpc-status: 5\r\ngrpc-message: no such thing\r\n\r\n`;
    if (start.includes("/head")) return reply("", [GRPC, "grpc-status: 7"]);
    if (start.includes("/wrong")) return `${CHUNKED}grpc-status: none\r\n\r\n`;
    return `${CHUNKED}\r\n`;
  });
}

async function call(port: number, path: string, body = ""): Promise<void> {
  const client = await RawPeer.connect(port);
  client.send(
    `POST ${path} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n${GRPC}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await client.message();
  client.socket.destroy();
}

test("the access log and expressions have the gRPC status, in head or trailers", async () => {
  await using upstream = await backend();
  const accessLog = { add: { seen: "response.grpcStatus", failed: "has(response.grpcStatus)" } };
  await using plane = await TestPlane.start(upstream.port, { frontend: { accessLog } });
  for (const [path, status] of [
    ["/trailers", 5],
    ["/head", 7],
    ["/wrong", 2],
    ["/none", undefined],
  ] as const) {
    await call(plane.port, path);
    const line = await plane.logged(`"${path}"`);
    assert.deepEqual([line["grpc.status"], line.seen, line.failed], [status, status, status !== undefined], path);
  }
});

test("a gRPC server sends it over HTTP/2: log and health use it, and the bytes of the call are recorded", async () => {
  const refuse = () => Promise.reject(Object.assign(new Error("later"), { code: 14 }));
  await using server = await GrpcServer.start({
    "/test.Echo/Say": { unary: (message) => message },
    "/test.Echo/Fail": { unary: refuse },
  });
  const accessLog = { add: { asked: "size(request.body)", answered: "size(response.body)" } };
  const backendPolicies = { health: { unhealthyExpression: "response.grpcStatus == 14", eviction: {} } };
  await using plane = await gatewayTo(server.port, { frontend: { accessLog }, backendPolicies });
  for (const [method, status, answered, failures] of [
    ["Say", 0, 8, 0],
    ["Fail", 14, 0, 1],
  ] as const) {
    // One message of three bytes in its frame.
    await call(plane.port, `/test.Echo/${method}`, "\0\0\0\0\x03abc");
    const line = await plane.logged(`/${method}"`);
    assert.deepEqual([line["grpc.status"], line.asked, line.answered], [status, 8, answered], method);
    assert.equal(plane.endpoints.stats()[0]?.consecutiveFailures, failures);
  }
});

test("errors of the gateway have it too, and the filter of the log can read it", async () => {
  await using upstream = await backend();
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  const accessLog = { filter: "response.grpcStatus != 0" };
  await using plane = await TestPlane.start([{ path: "/there", target }], { frontend: { accessLog } });
  await call(plane.port, "/there/none");
  await call(plane.port, "/nowhere");
  const line = await plane.logged('"request"');
  assert.deepEqual([line["http.path"], line["http.status"], line["grpc.status"]], ["/nowhere", 200, 12]);
});

test("a failed call is an error in the log, whoever has responded", async () => {
  await using upstream = await backend();
  const target = { type: "static", host: "127.0.0.1", port: upstream.port } as const;
  const responseHeaderModifier = { set: { "grpc-status": "9" } };
  const directResponse = { status: 200, body: "no call" };
  await using plane = await TestPlane.start([
    { path: "/", target },
    { path: "/modified", target, policies: { responseHeaderModifier } },
    { path: "/direct", target, policies: { directResponse } },
    { path: "/composed", target, policies: { directResponse, responseHeaderModifier } },
    { path: "/fine", target, policies: { directResponse, responseHeaderModifier: { set: { "grpc-status": "0" } } } },
  ]);
  for (const [path, error] of [
    ["/trailers", "the backend ended the call with grpc-status 5 (NOT_FOUND)"],
    ["/modified/none", "the backend ended the call with grpc-status 9 (FAILED_PRECONDITION)"],
    ["/direct", "the call ended with no grpc-status"],
    ["/composed", "the call ended with grpc-status 9 (FAILED_PRECONDITION)"],
    ["/fine", undefined],
  ] as const) {
    await call(plane.port, path);
    assert.equal((await plane.logged(`"${path}"`)).error, error, path);
  }
});

test("both spans of a call have the status of its trailers", async () => {
  await using upstream = await backend();
  await using collector = await TestCollector.http();
  await using gateway = await TestGateway.start({
    config: { workerThreads: 1 },
    frontendPolicies: { tracing: { host: `127.0.0.1:${collector.port}`, protocol: "http", randomSampling: true } },
    binds: [{ port: 0, listeners: [{ routes: [{ backends: [{ host: `127.0.0.1:${upstream.port}` }] }] }] }],
  });
  await call(gateway.port(), "/test.Echo/trailers");
  await call(gateway.port(), "/test.Echo/wrong");
  const entries = await collector.until(({ length }) => length === 4);
  const told = entries.map(({ kind, status, attributes }) => {
    const { "rpc.system.name": system, "rpc.method": method, ...rest } = attributesOf(attributes);
    return [kind, system, method, rest["rpc.response.status_code"], rest["error.type"], status];
  });
  const [server, client, failed] = [2, 3, { code: 2 }];
  const [missing, wrong] = [
    ["grpc", "test.Echo/trailers", "NOT_FOUND"],
    ["grpc", "test.Echo/wrong", "UNKNOWN"],
  ];
  assert.deepEqual(told.toSorted(), [
    [server, ...missing, undefined, undefined],
    [server, ...wrong, "UNKNOWN", failed],
    [client, ...missing, "NOT_FOUND", failed],
    [client, ...wrong, "UNKNOWN", failed],
  ]);
});
