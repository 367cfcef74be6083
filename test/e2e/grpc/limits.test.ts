import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { H2Client } from "../../helpers/h2-client.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";

const INTERNAL = "13";
const RESOURCE_EXHAUSTED = "8";

/** A gateway that limits what it takes, in front of an echo of grpc-js. */
async function limited() {
  const server = await GrpcServer.start({ "/test.Echo/Say": { unary: (message) => message } });
  const routes = [{ backends: [{ host: `127.0.0.1:${server.port}` }] }];
  const gateway = await LocalGateway.start({
    frontendPolicies: { http: { maxRequestBodySize: 1000, http1MaxHeaders: 20, http2MaxHeaderSize: 4096 } },
    binds: [{ port: 0, listeners: [{ routes }] }],
  });
  return {
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      server.stop();
    },
  };
}

function many(count: number, value = "x"): string[] {
  return Array.from({ length: count }, (_, i) => [`x-${i}`, value]).flat();
}

test("requests that reach no policy are answered in the form of gRPC, others in plain text", async () => {
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
  // The call whose body was too large had begun.
  const line = setup.gateway.lines.find((each) => each["http.method"] === "POST");
  assert.deepEqual([line?.["http.status"], line?.["grpc.status"]], [200, 8]);
  client.peer.socket.destroy();
});

test("a client of gRPC learns that its metadata or message is too large, and calls on", async () => {
  await using setup = await limited();
  using client = new GrpcClient(setup.gateway.port());
  const say = async (message: string, metadata: Record<string, string> = {}): Promise<unknown[]> => {
    const { status } = await client.unary("/test.Echo/Say", message, { metadata });
    return [status.code, status.details];
  };
  // Of grpc-js the metadata comes first, and Content-Type after the limit.
  for (const size of [250, 600]) {
    const metadata = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`x-${i}`, "x".repeat(size)]));
    // Twice: then the tables have what may be indexed.
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await say("hi", metadata), size === 250 ? [0, "OK"] : [8, "request header fields too large"]);
  }
  assert.deepEqual(await say("x".repeat(2000)), [8, "content too large"]);
  assert.deepEqual(await say("hi"), [0, "OK"]);
});
