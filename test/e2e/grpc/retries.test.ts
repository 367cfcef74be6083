import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import { Metadata, type ServerDuplexStream } from "@grpc/grpc-js";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { H2Server } from "../upstream-h2/support.ts";

/** A message of three bytes with its prefix. */
const MESSAGE = Buffer.from("\0\0\0\0\x03abc", "latin1");
const RETRY = { attempts: 2, codes: [], grpcCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"] };
const GRPC = { ":status": 200, "content-type": "application/grpc" };

interface Answer {
  readonly status: string | string[] | undefined;
  readonly body: string;
}

async function call(port: number): Promise<Answer> {
  const headers = { "content-type": "application/grpc", te: "trailers", connection: "te" };
  const options = { host: "127.0.0.1", port, path: "/test.Shop/Buy", method: "POST", agent: false, headers };
  const opened = request(options);
  opened.end(MESSAGE);
  const [response] = (await once(opened, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response.setEncoding("latin1")) body += String(chunk);
  return { status: response.trailers["grpc-status"] ?? response.headers["grpc-status"], body };
}

/** A status in the head, as most servers fail. */
function fail(stream: ServerHttp2Stream, status: number, more: Record<string, string> = {}): void {
  stream.respond({ ...GRPC, "grpc-status": String(status), ...more }, { endStream: true });
}

/** The status after a message. */
function end(stream: ServerHttp2Stream, status: number): void {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(status) }));
  stream.end(MESSAGE);
}

function succeed(stream: ServerHttp2Stream): void {
  end(stream, 0);
}

/** The status in trailers that follow a head, without a message between them. */
function failLate(stream: ServerHttp2Stream, status: number, more: Record<string, string> = {}): void {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(status), ...more }));
  stream.end();
}

/** A gateway in front of a server that serves each call by the next function of `serve`, and further ones by the last. */
async function gatewayWith(serve: readonly ((stream: ServerHttp2Stream) => void)[], retry: object = RETRY) {
  const attempts: (string | undefined)[] = [];
  const server = await H2Server.start((stream, headers) => {
    attempts.push(headers["x-retry-attempt"] as string | undefined);
    stream.resume();
    stream.on("end", () => serve[Math.min(attempts.length, serve.length) - 1]?.(stream));
  });
  const backend = { host: `127.0.0.1:${server.port}`, policies: { http: { version: "HTTP/2.0" } } };
  const routes = [{ policies: { retry }, backends: [backend] }];
  const gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  return {
    port: gateway.port(),
    attempts,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      server[Symbol.dispose]();
    },
  };
}

test("calls that fail with one of the statuses are retried", async () => {
  await using gateway = await gatewayWith([(stream) => fail(stream, 14), (stream) => fail(stream, 8), succeed]);
  assert.deepEqual(await call(gateway.port), { status: "0", body: MESSAGE.toString("latin1") });
  assert.deepEqual(gateway.attempts, [undefined, "1", "2"]);
});

test("the last failure is forwarded, and so is one with another status", async () => {
  await using exhausted = await gatewayWith([(stream) => fail(stream, 14)]);
  assert.equal((await call(exhausted.port)).status, "14");
  assert.equal(exhausted.attempts.length, 3);
  await using other = await gatewayWith([(stream) => fail(stream, 5)]);
  assert.equal((await call(other.port)).status, "5");
  assert.equal(other.attempts.length, 1);
});

test("a call that fails after its first message is not retried", async () => {
  await using gateway = await gatewayWith([(stream) => end(stream, 14)]);
  assert.deepEqual(await call(gateway.port), { status: "14", body: MESSAGE.toString("latin1") });
  assert.equal(gateway.attempts.length, 1);
});

test("grpc-retry-pushback-ms of a service decides when a call is retried, and whether", async () => {
  const slow = { ...RETRY, backoff: "1h" };
  await using soon = await gatewayWith(
    [(stream) => fail(stream, 14, { "grpc-retry-pushback-ms": "0" }), succeed],
    slow,
  );
  assert.equal((await call(soon.port)).status, "0");
  for (const pushback of ["-1", "soon"]) {
    await using never = await gatewayWith([
      (stream) => fail(stream, 14, { "grpc-retry-pushback-ms": pushback }),
      succeed,
    ]);
    assert.equal((await call(never.port)).status, "14", pushback);
  }
});

test("without gRPC statuses in the policy, no status is retried", async () => {
  await using gateway = await gatewayWith([(stream) => fail(stream, 14), succeed], { attempts: 2, codes: [503] });
  assert.equal((await call(gateway.port)).status, "14");
});

test("a status in trailers is retried like one in the head, with its pushback", async () => {
  await using gateway = await gatewayWith([
    (stream) => failLate(stream, 14),
    (stream) => fail(stream, 8),
    (stream) => failLate(stream, 5),
  ]);
  assert.equal((await call(gateway.port)).status, "5");
  assert.deepEqual(gateway.attempts, [undefined, "1", "2"]);
  await using never = await gatewayWith([
    (stream) => failLate(stream, 14, { "grpc-retry-pushback-ms": "-1" }),
    succeed,
  ]);
  assert.equal((await call(never.port)).status, "14");
  assert.equal(never.attempts.length, 1);
});

test("a call that breaks off between the head and the first message is retried", async () => {
  await using gateway = await gatewayWith([
    (stream) => {
      stream.respond(GRPC);
      // The head arrives before the connection breaks.
      stream.session?.ping(() => stream.session?.destroy());
    },
    succeed,
  ]);
  assert.deepEqual(await call(gateway.port), { status: "0", body: MESSAGE.toString("latin1") });
});

type Stream = ServerDuplexStream<Buffer, Uint8Array>;

/** A service of grpc-js whose calls fail twice after their head, and a gateway that retries them. */
async function failingTwice() {
  const fails = (answer: (stream: Stream) => void) => {
    let calls = 0;
    const stream = (each: Stream) => {
      each.sendMetadata(new Metadata());
      each.on("end", () => {
        if (++calls > 2) answer(each);
        else each.emit("error", { code: 14, details: "not yet" });
      });
      each.resume();
    };
    return { stream };
  };
  const one = (stream: Stream): void => {
    stream.write(Buffer.from("one"));
    stream.end();
  };
  const two = (stream: Stream): void => {
    stream.write(Buffer.from("one"));
    stream.write(Buffer.from("two"));
    stream.end();
  };
  const server = await GrpcServer.start({
    "/test.Late/Unary": fails(one),
    "/test.Late/Client": fails(one),
    "/test.Late/Server": fails(two),
    "/test.Late/Bidi": fails(two),
    // Sends nothing until the retry, because its client waits for the head first.
    "/test.Late/Greet": {
      stream(each: Stream) {
        each.sendMetadata(new Metadata());
        each.on("data", (message: Buffer) => each.write(message));
        each.on("end", () => each.end());
      },
    },
    "/test.Late/Break": {
      stream(each: Stream) {
        each.write(Buffer.from("one"));
        each.on("end", () => each.emit("error", { code: 14, details: "too late" }));
        each.resume();
      },
    },
  });
  const backends = [{ host: `127.0.0.1:${server.port}` }];
  const routes = [{ policies: { retry: RETRY }, backends }];
  const gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  const client = new GrpcClient(gateway.port());
  return {
    client,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await gateway[Symbol.asyncDispose]();
      server.stop();
    },
  };
}

async function textsOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const texts: string[] = [];
  for await (const message of stream) texts.push(String(message));
  return texts.join();
}

test("calls in all four forms are retried after a head and trailers without a message", async () => {
  await using service = await failingTwice();
  const { client } = service;
  const unary = await client.unary("/test.Late/Unary", "x");
  assert.deepEqual([unary.status.code, unary.message], [0, "one"]);
  const upload = await client.clientStream("/test.Late/Client", ["x", "y", "z"]);
  assert.deepEqual([upload.status.code, upload.message], [0, "one"]);
  assert.equal(await textsOf(client.serverStream("/test.Late/Server", "x")), "one,two");
  const bidi = client.bidi("/test.Late/Bidi");
  bidi.write(Buffer.from("x"));
  bidi.end();
  assert.equal(await textsOf(bidi), "one,two");
});

test("a client that waits for the head before it sends gets it, and messages of a stream are forwarded as they arrive", async () => {
  await using service = await failingTwice();
  const greeting = service.client.bidi("/test.Late/Greet");
  await once(greeting, "metadata");
  greeting.write(Buffer.from("hello"));
  const [reply] = (await once(greeting, "data")) as [Buffer];
  assert.equal(String(reply), "hello");
  greeting.end();
  greeting.resume();
  await once(greeting, "end");
  // The first message comes while the client is still sending; the failure after it is the client's to handle.
  const broken = service.client.bidi("/test.Late/Break");
  await once(broken, "data");
  const failed = once(broken, "error");
  broken.end();
  const [{ code, details }] = (await failed) as [{ code: number; details: string }];
  assert.deepEqual([code, details], [14, "too late"]);
});
