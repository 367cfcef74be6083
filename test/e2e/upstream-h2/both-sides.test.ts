import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingHttpHeaders, type ServerHttp2Stream, sensitiveHeaders } from "node:http2";
import { test } from "node:test";
import { Client, credentials, type Metadata, type ServiceError } from "@grpc/grpc-js";
import { ms } from "../../../src/base/durations.ts";
import { TestPlane } from "../../helpers/data-plane.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { until } from "../../helpers/until.ts";
import { answerOf, NodeClient } from "../http2/support.ts";
import { answer, gatewayTo, H2Server } from "./support.ts";

const CANCEL = 8;

/** Names of the fields that arrived as never indexed. */
function secretsOf(headers: IncomingHttpHeaders): string[] {
  return (headers as { readonly [sensitiveHeaders]?: string[] })[sensitiveHeaders]?.toSorted() ?? [];
}

test("requests of plaintext HTTP/2 clients are sent as HTTP/2 to backends without a configured version", async () => {
  using server = await H2Server.start((stream) => answer(stream, "h2"));
  await using plane = await TestPlane.start(server.port);
  await using client = await NodeClient.connect(plane.port);
  assert.equal((await client.fetch()).body, "h2");
});

test("messages with trailers pass unchanged in both directions", async () => {
  let seen: IncomingHttpHeaders = {};
  let sum: IncomingHttpHeaders = {};
  using server = await H2Server.start((stream, headers) => {
    seen = headers;
    stream.on("trailers", (fields) => {
      sum = fields;
    });
    stream.respond({ ":status": 201, "x-b": "2" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-down": "4" }));
    stream.pipe(stream);
  });
  await using plane = await gatewayTo(server.port);
  await using client = await NodeClient.connect(plane.port);
  const stream = client.session.request(
    { ":method": "POST", ":path": "/p?q", ":authority": "shop.example", "x-a": "1", te: "trailers" },
    { waitForTrailers: true },
  );
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-up": "3" }));
  stream.end("text");
  const { status, headers, body, trailers } = await answerOf(stream);
  assert.deepEqual([status, headers["x-b"], body, trailers["x-down"]], [201, "2", "text", "4"]);
  assert.deepEqual(
    [seen[":method"], seen[":path"], seen[":authority"], seen["x-a"], seen.te, sum["x-up"]],
    ["POST", "/p?q", "shop.example", "1", "trailers", "3"],
  );
});

test("fields that one side never indexes are not indexed on the other side, in heads and trailers", async () => {
  const seen: unknown[] = [];
  using server = await H2Server.start((stream, headers) => {
    seen.push(secretsOf(headers));
    stream.on("trailers", (fields) => seen.push(secretsOf(fields)));
    stream.respond({ "x-down": "1", "x-plain": "1", [sensitiveHeaders]: ["x-down"] }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "2", [sensitiveHeaders]: ["x-sum"] }));
    stream.pipe(stream);
  });
  await using plane = await gatewayTo(server.port, {
    policies: { retry: { attempts: 1, backoff: ms(0), codes: [503] } },
  });
  await using client = await NodeClient.connect(plane.port);
  // The second time, the tables have all fields that may be indexed.
  for (let i = 0; i < 2; i++) {
    const marked = { "x-key": "k", "x-plain": "p", cookie: "a=1", authorization: "Basic eDp5" };
    const stream = client.session.request(
      { ":method": "POST", ":path": "/", te: "trailers", ...marked, [sensitiveHeaders]: ["x-key", "cookie"] },
      { waitForTrailers: true },
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-up": "3", [sensitiveHeaders]: ["x-up"] }));
    stream.end("text");
    const { headers, trailers } = await answerOf(stream);
    assert.deepEqual([secretsOf(headers), secretsOf(trailers)], [["x-down"], ["x-sum"]]);
    assert.deepEqual(seen.splice(0), [["authorization", "cookie", "x-key"], ["x-up"]]);
  }
});

test("an early response reaches the client, cancels the upload, and the connection serves the next request", async () => {
  const uploads: ServerHttp2Stream[] = [];
  using server = await H2Server.start((stream, { ":path": path }) => {
    if (path !== "/upload") return answer(stream, "next");
    uploads.push(stream);
    // Otherwise Node would end the stream itself.
    stream.resume();
    stream.respond({ ":status": 413 });
    stream.end("too much");
  });
  await using plane = await gatewayTo(server.port);
  await using client = await NodeClient.connect(plane.port);
  const upload = client.open({ ":method": "POST", ":path": "/upload" });
  upload.write("begin");
  upload.on("error", () => {});
  const { status, body } = await answerOf(upload);
  assert.deepEqual([status, body], [413, "too much"]);
  await until(() => uploads[0]?.rstCode === CANCEL, "the CANCEL");
  assert.equal((await client.fetch()).body, "next");
  assert.equal(server.sessions.length, 1);
});

test("a client that cancels a stream cancels it at the backend; its other streams continue", async () => {
  const waiting: ServerHttp2Stream[] = [];
  using server = await H2Server.start((stream) => {
    stream.respond({ ":status": 200 });
    stream.write("begin ");
    waiting.push(stream);
  });
  await using plane = await gatewayTo(server.port);
  await using client = await NodeClient.connect(plane.port);
  const [kept, given] = [client.open({ ":path": "/" }, true), client.open({ ":path": "/" }, true)];
  const answered = answerOf(kept);
  given.on("error", () => {});
  await once(given, "data");
  await until(() => waiting.length === 2, "both streams");
  given.close(CANCEL);
  await until(() => waiting.some(({ rstCode }) => rstCode === CANCEL), "the CANCEL");
  waiting.find(({ closed }) => !closed)?.end("end");
  assert.equal((await answered).body, "begin end");
});

test("a stream that its client does not read slows down the backend's stream, and no other", async () => {
  // Not a multiple of a window: if a stream ends with a full one, Node's server resets it instead of ending it.
  const size = 8_000_000;
  let given = 0;
  using server = await H2Server.start((stream, { ":path": path }) => {
    if (path !== "/large") return answer(stream, "small");
    stream.respond({ ":status": 200 });
    const pour = (): void => {
      while (given < size) {
        given += 50_000;
        if (!stream.write(Buffer.alloc(50_000))) return void stream.once("drain", pour);
      }
      stream.end();
    };
    pour();
  });
  await using plane = await gatewayTo(server.port);
  await using client = await NodeClient.connect(plane.port);
  const large = client.open({ ":path": "/large" }, true);
  large.pause();
  let before = -1;
  await until(() => {
    const stalled = given > 0 && given === before;
    before = given;
    return stalled;
  }, "the backend to be held back");
  assert.ok(given < 2 * 1024 * 1024, `${given} bytes`);
  // The unread stream may fill its own client's window.
  await using other = await NodeClient.connect(plane.port);
  for (let i = 0; i < 3; i++) assert.equal((await other.fetch()).body, "small");
  assert.equal(server.sessions.length, 1);
  let received = 0;
  large.on("data", (bytes: Buffer) => {
    received += bytes.length;
  });
  large.resume();
  await once(large, "end");
  assert.equal(received, size);
});

/** Bytes as they are. */
const same = (bytes: Buffer): Buffer => bytes;

test("gRPC with a real client and a real server: unary, bidirectional, failures, cancellation", async () => {
  const cancelled = Promise.withResolvers<void>();
  await using server = await GrpcServer.start({
    "/test.Echo/Say": { unary: (message) => Buffer.from(`${message}!`) },
    "/test.Echo/Fail": { unary: () => Promise.reject(Object.assign(new Error("no voice: 100 %"), { code: 5 })) },
    "/test.Echo/Chat": {
      stream: (chat) => {
        chat.on("data", (message: Buffer) => chat.write(Buffer.from(`${message}?`)));
        chat.on("end", () => chat.end());
        chat.on("cancelled", () => cancelled.resolve());
      },
    },
  });
  await using plane = await TestPlane.start(server.port);
  const client = new Client(`127.0.0.1:${plane.port}`, credentials.createInsecure());
  const unary = (path: string): Promise<string> =>
    new Promise((resolve) => {
      const done = (error: ServiceError | null, reply?: Buffer): void =>
        resolve(error === null ? String(reply) : `${error.code} ${error.details}`);
      client.makeUnaryRequest(path, same, same, Buffer.from("hi"), done);
    });
  const said = await Promise.all(Array.from({ length: 150 }, () => unary("/test.Echo/Say")));
  assert.deepEqual(new Set(said), new Set(["hi!"]));
  assert.equal(await unary("/test.Echo/Fail"), "5 no voice: 100 %");
  assert.match(await unary("/test.Echo/None"), /^12 /);
  const chat = client.makeBidiStreamRequest("/test.Echo/Chat", same, same);
  const replies: string[] = [];
  chat.on("data", (message: Buffer) => replies.push(String(message)));
  for (const text of ["a", "b"]) {
    chat.write(Buffer.from(text));
    await until(() => replies.includes(`${text}?`), `the reply to ${text}`);
  }
  chat.end();
  const [status] = (await once(chat, "status")) as [{ code: number; metadata: Metadata }];
  assert.deepEqual([status.code, replies], [0, ["a?", "b?"]]);
  const given = client.makeBidiStreamRequest("/test.Echo/Chat", same, same);
  given.on("error", () => {});
  given.write(Buffer.from("c"));
  await once(given, "data");
  given.cancel();
  await cancelled.promise;
  client.close();
});
