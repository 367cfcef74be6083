import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { ServerDuplexStream, StatusObject } from "@grpc/grpc-js";
import { INITIAL_WINDOW_SIZE } from "../../../src/http/h2/frames.ts";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";

const DEADLINE_EXCEEDED = "4";
const INTERNAL = "13";
const RESOURCE_EXHAUSTED = "8";

/** A gateway with limits, in front of an echo server of grpc-js. */
async function limited(more: object = {}) {
  let cancelled = 0;
  const open = (call: ServerDuplexStream<Buffer, Uint8Array>): void => {
    call.on("cancelled", () => cancelled++).on("error", () => {});
  };
  const server = await GrpcServer.start({
    "/test.Echo/Say": { unary: (message) => message },
    "/test.Echo/Chat": {
      stream(call) {
        open(call);
        call.on("data", (message: Buffer) => call.write(message));
      },
    },
    "/test.Echo/Collect": {
      stream(call) {
        open(call);
        call.resume();
      },
    },
  });
  const policies = { grpcWeb: {} };
  const routes = [{ policies, backends: [{ host: `127.0.0.1:${server.port}` }] }];
  const gateway = await LocalGateway.start({
    frontendPolicies: { http: { maxRequestBodySize: 1000, http1MaxHeaders: 20, http2MaxHeaderSize: 4096, ...more } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  return {
    gateway,
    /** Calls that the server has seen end early. */
    get cancelled() {
      return cancelled;
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      server.stop();
    },
  };
}

function many(count: number, value = "x"): string[] {
  return Array.from({ length: count }, (_, i) => [`x-${i}`, value]).flat();
}

test("requests that are rejected before any policy get a gRPC status if they are gRPC, else plain text", async () => {
  await using setup = await limited();
  const client = await H2Client.connect(setup.gateway.port());
  const grpc = ["content-type", "application/grpc+json", "te", "trailers"];
  const call = (id: number, fields: readonly string[], path?: string): void =>
    client.request(id, "POST", [...grpc, ...fields], path);
  call(1, ["content-length", "1001"]);
  call(3, []);
  client.data(3, "x".repeat(1001), false);
  call(5, many(30));
  call(7, many(12, "x".repeat(500)));
  call(9, [], "/a/../b");
  for (const id of [1, 3, 5, 7, 9]) {
    const { sections, body, ended, dataFrames } = await client.response(id);
    const status = id === 9 ? INTERNAL : RESOURCE_EXHAUSTED;
    const [head = []] = sections;
    assert.deepEqual(head.slice(0, 6), [
      ":status",
      "200",
      "content-type",
      "application/grpc+json",
      "grpc-status",
      status,
    ]);
    assert.deepEqual([sections.length, body, dataFrames, ended], [1, "", 0, true], String(id));
  }
  client.request(11, "POST", ["content-type", "application/grpc-web", ...many(30)]);
  assert.equal(H2Client.status(await client.response(11)), 431);
  client.request(13, "POST", ["content-type", "application/grpc;charset=utf-8", ...many(30)]);
  assert.equal(H2Client.status(await client.response(13)), 200);
  // The call whose body was too large had begun.
  const line = setup.gateway.lines.find((each) => each["http.method"] === "POST");
  assert.deepEqual([line?.["http.status"], line?.["grpc.status"]], [200, 8]);
  client.peer.socket.destroy();
});

test("a gRPC client whose metadata or message is too large gets a status and can make further calls", async () => {
  await using setup = await limited();
  using client = new GrpcClient(setup.gateway.port());
  const say = async (message: string, metadata: Record<string, string> = {}): Promise<unknown[]> => {
    const { status } = await client.unary("/test.Echo/Say", message, { metadata });
    return [status.code, status.details];
  };
  // grpc-js sends metadata first, so Content-Type comes after the limit.
  for (const size of [250, 600]) {
    const metadata = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`x-${i}`, "x".repeat(size)]));
    // Twice: then the tables have all fields that may be indexed.
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await say("hi", metadata), size === 250 ? [0, "OK"] : [8, "request header fields too large"]);
  }
  assert.deepEqual(await say("x".repeat(2000)), [8, "content too large"]);
  assert.deepEqual(await say("hi"), [0, "OK"]);
});

for (const method of ["Chat", "Collect"])
  test(`a stream that stalls or is too long ends with a status, ${method === "Chat" ? "after" : "before"} the response has begun`, async () => {
    await using setup = await limited({ streamIdleTimeout: "200ms" });
    const { gateway } = setup;
    using client = new GrpcClient(gateway.port());
    for (const [size, code, details] of [
      [0, Number(DEADLINE_EXCEEDED), "request timeout"],
      [2000, Number(RESOURCE_EXHAUSTED), "content too large"],
    ] as const) {
      const call = client.bidi(`/test.Echo/${method}`);
      call.on("error", () => {});
      const ended = new Promise<StatusObject>((resolve) => call.on("status", resolve));
      call.write(Buffer.from("hello"));
      if (method === "Chat") assert.equal(String(await once(call, "data")), "hello");
      else call.resume();
      if (size > 0) call.write(Buffer.alloc(size));
      const status = await ended;
      assert.deepEqual([status.code, status.details], [code, details]);
      const cancelled = size === 0 ? 1 : 2;
      await gateway.until(() => setup.cancelled === cancelled, "the end of the call at the server");
      await gateway.until(() => gateway.lines.length === cancelled, "the line of the call");
      const line = gateway.lines.at(-1);
      assert.deepEqual([line?.reason, line?.["grpc.status"]], ["InvalidRequest", code]);
      assert.match(String(line?.error), new RegExp(`^${details}: `));
    }
  });

test("what a client still sends on a stream after its status is discarded", async () => {
  await using setup = await limited({ streamIdleTimeout: "200ms" });
  const client = await H2Client.connect(setup.gateway.port());
  const chat = (id: number, type = "application/grpc"): void => {
    client.request(id, "POST", ["content-type", type, "te", "trailers"], "/test.Echo/Chat");
    client.data(id, "\0\0\0\0\x05hello", false);
  };
  chat(1);
  const stalled = await client.response(1);
  assert.deepEqual(stalled.sections.at(-1), ["grpc-status", DEADLINE_EXCEEDED, "grpc-message", "request%20timeout"]);
  await client.until(() => stalled.reset !== undefined, "the end of the stalled stream");
  assert.deepEqual([stalled.body, stalled.ended, stalled.reset], ["\0\0\0\0\x05hello", true, "NO_ERROR"]);
  // gRPC-Web has its status in the body.
  chat(3, "application/grpc-web");
  await client.until(() => client.stream(3).body.length > 0, "the first message");
  client.data(3, "x".repeat(1000), false);
  const long = await client.response(3);
  assert.match(long.body, /grpc-status: ?8\r\n/);
  await client.until(() => long.reset === "NO_ERROR", "the end of the long stream");
  client.peer.socket.destroy();
});

test("a stream whose client does not read is reset, because it would not read a status", async () => {
  await using setup = await limited({ streamIdleTimeout: "200ms" });
  const client = await H2Client.connect(setup.gateway.port(), [INITIAL_WINDOW_SIZE, 3]);
  client.request(1, "POST", ["content-type", "application/grpc", "te", "trailers"], "/test.Echo/Chat");
  client.data(1, "\0\0\0\0\x05hello", false);
  const { body, ended, reset } = await client.response(1);
  assert.deepEqual([body, ended, reset], ["\0\0\0", false, "CANCEL"]);
  assert.equal(setup.gateway.lines.at(-1)?.["grpc.status"], undefined);
  client.peer.socket.destroy();
});
