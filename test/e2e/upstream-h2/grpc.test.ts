import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { test } from "node:test";
import { ms } from "../../../src/base/durations.ts";
import type { PolicySet } from "../../../src/policies/policy-set.ts";
import { noOpenssl, TestCa } from "../../helpers/certificates.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { until } from "../../helpers/until.ts";
import { gatewayTo, H2Server } from "./support.ts";

interface GrpcAnswer {
  readonly status: number;
  /** Of all messages. */
  readonly payload: string;
  readonly headers: IncomingMessage["headers"];
  readonly trailers: NodeJS.Dict<string>;
}

/** Makes a call one of gRPC-Web. */
const WEB = { "content-type": "application/grpc-web" };

/** A message in its frame (the gRPC protocol over HTTP/2, "Length-Prefixed-Message"). */
function framed(text: string): Buffer {
  const frame = Buffer.alloc(5 + text.length);
  frame.writeUInt32BE(text.length, 1);
  frame.write(text, 5);
  return frame;
}

/** A gRPC call as a client of HTTP/1.1 makes it: a chunked body each way, the status in the trailers. */
function call(
  port: number,
  path: string,
  messages: readonly string[],
  ca?: string,
  fields: object = { te: "trailers", connection: "te" },
): Promise<GrpcAnswer> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      path,
      method: "POST",
      agent: false,
      headers: { host: "one.example", "content-type": "application/grpc", ...fields },
    };
    const answered = (response: IncomingMessage): void => {
      const chunks: Buffer[] = [];
      response.on("data", (bytes: Buffer) => chunks.push(bytes));
      response.on("error", reject);
      response.on("end", () => {
        let payload = "";
        const all = Buffer.concat(chunks);
        for (let at = 0; at < all.length; at += 5 + all.readUInt32BE(at + 1))
          payload += all.toString("utf8", at + 5, at + 5 + all.readUInt32BE(at + 1));
        const { statusCode: status = 0, headers, trailers } = response;
        resolve({ status, payload, headers, trailers });
      });
    };
    const request =
      ca === undefined
        ? httpRequest(options, answered)
        : httpsRequest({ ...options, ca, servername: "one.example" }, answered);
    request.on("error", reject);
    for (const message of messages) request.write(framed(message));
    request.end();
  });
}

const methods = {
  "/test.Echo/Say": { unary: (message: Buffer) => message },
  "/test.Echo/Fail": { unary: () => Promise.reject(Object.assign(new Error("no voice"), { code: 5 })) },
  "/test.Echo/Chat": {
    stream: (chat: import("@grpc/grpc-js").ServerDuplexStream<Buffer, Uint8Array>) => {
      chat.on("data", (message: Buffer) => chat.write(Buffer.from(`${message}!`)));
      chat.on("end", () => chat.end());
    },
  },
};

test("an HTTP/1.1 client gets messages and the status in trailers from a real gRPC server", async () => {
  await using server = await GrpcServer.start(methods);
  await using plane = await gatewayTo(server.port);
  const said = await call(plane.port, "/test.Echo/Say", ["hello"]);
  assert.deepEqual([said.status, said.payload, said.trailers["grpc-status"]], [200, "hello", "0"]);
  assert.equal(said.headers["content-type"], "application/grpc+proto");
  const chat = await call(plane.port, "/test.Echo/Chat", ["a", "b", "c"]);
  assert.deepEqual([chat.payload, chat.trailers["grpc-status"]], ["a!b!c!", "0"]);
});

test("failed calls: the status is in head or trailers, as the server sent it", async () => {
  await using server = await GrpcServer.start(methods);
  await using plane = await gatewayTo(server.port);
  for (const [path, expected] of [
    ["/test.Echo/Fail", "5"],
    ["/test.Echo/Unknown", "12"],
  ] as const) {
    const failed = await call(plane.port, path, ["x"]);
    const { "grpc-status": status = failed.headers["grpc-status"] } = failed.trailers;
    assert.deepEqual([failed.status, status], [200, expected]);
  }
});

test("calls that fail make an endpoint unhealthy, unless an expression says otherwise", async () => {
  await using server = await GrpcServer.start(methods);
  const eviction = { duration: ms(60_000), consecutiveFailures: 2 };
  const evicted = async (health: PolicySet["health"]): Promise<boolean> => {
    await using plane = await gatewayTo(server.port, { ...(health && { backendPolicies: { health } }) });
    for (let i = 0; i < 2; i++) await call(plane.port, "/test.Echo/Fail", ["x"]);
    await until(() => plane.endpoints.stats()[0]?.pending === 0, "the end of the calls");
    return plane.endpoints.stats()[0]?.evictedMs !== null;
  };
  assert.equal(await evicted({ eviction }), true);
  assert.equal(await evicted({ eviction, unhealthyExpression: "response.code >= 500" }), false);
});

test("a server that goes away between calls costs none of them", async () => {
  const first = await GrpcServer.start(methods);
  const { port } = first;
  await using plane = await gatewayTo(port);
  assert.equal((await call(plane.port, "/test.Echo/Say", ["one"])).payload, "one");
  first.stop();
  await using _second = await GrpcServer.start(methods, port);
  const answers = await Promise.all(Array.from({ length: 20 }, () => call(plane.port, "/test.Echo/Say", ["two"])));
  assert.deepEqual(
    answers.map(({ payload }) => payload),
    Array(20).fill("two"),
  );
});

test("gRPC from clients inside TLS is sent as HTTP/2 by default", { skip: noOpenssl }, async () => {
  using ca = new TestCa();
  const { certFile, keyFile } = ca.issue("one.example");
  await using server = await GrpcServer.start(methods);
  const routes = [{ backends: [{ host: `127.0.0.1:${server.port}` }] }];
  const tls = { cert: certFile, key: keyFile };
  const listeners = [{ protocol: "HTTPS", hostname: "one.example", tls, routes }];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners }] });
  const said = await call(gateway.port(), "/test.Echo/Say", ["hello"], ca.cert);
  assert.deepEqual([said.payload, said.trailers["grpc-status"]], ["hello", "0"]);
});

test("a stream that breaks after its head ends with UNAVAILABLE, or is cut off if the client could not see the status", async () => {
  using server = await H2Server.start((stream, { ":path": path }) => {
    const length = path === "/sized" ? { "content-length": "100" } : {};
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...length });
    stream.write(framed("half"), () => stream.session?.destroy());
  });
  await using plane = await gatewayTo(server.port);
  const broken = await call(plane.port, "/open", ["x"]);
  assert.deepEqual([broken.payload, broken.trailers["grpc-status"]], ["half", "14"]);
  assert.equal(broken.trailers["grpc-message"], "upstream%20call%20failed");
  const line = await plane.logged("/open");
  assert.deepEqual([line.reason, line["grpc.status"]], ["UpstreamFailure", 14]);
  await assert.rejects(call(plane.port, "/sized", ["x"]));
  await assert.rejects(call(plane.port, "/open", ["x"], undefined, {}));
});

test("a trace says how a call ended, and how many messages went each way", async () => {
  await using server = await GrpcServer.start(methods);
  await using plane = await gatewayTo(server.port);
  const ends = async (path: string, messages: readonly string[]): Promise<unknown> => {
    const trace = await plane.trace(() => call(plane.port, path, messages));
    return trace.find(({ type }) => type === "requestFinished");
  };
  const finished = { type: "requestFinished", status: 200, error: null };
  const chat = { status: 0, requestMessages: 3, responseMessages: 3 };
  assert.deepEqual(await ends("/test.Echo/Chat", ["a", "b", "c"]), { ...finished, grpc: chat });
  const failed = { status: 5, requestMessages: 1, responseMessages: 0 };
  assert.deepEqual(await ends("/test.Echo/Fail", ["x"]), { ...finished, grpc: failed });
  // No messages are counted where they are in another form.
  await using translating = await gatewayTo(server.port, { policies: { grpcWeb: {} } });
  const trace = await translating.trace(() => call(translating.port, "/test.Echo/Fail", ["x"], undefined, WEB));
  assert.deepEqual(trace.at(-1), { ...finished, grpc: { status: 5 } });
});
