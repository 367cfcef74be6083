import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
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

/** A gateway in front of a server that serves the first calls by `serve`, one after the other, and then the last one again. */
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

test("calls that fail with one of the statuses are made again", async () => {
  await using gateway = await gatewayWith([(stream) => fail(stream, 14), (stream) => fail(stream, 8), succeed]);
  assert.deepEqual(await call(gateway.port), { status: "0", body: MESSAGE.toString("latin1") });
  assert.deepEqual(gateway.attempts, [undefined, "1", "2"]);
});

test("the last failure is passed on, and so is one with another status", async () => {
  await using exhausted = await gatewayWith([(stream) => fail(stream, 14)]);
  assert.equal((await call(exhausted.port)).status, "14");
  assert.equal(exhausted.attempts.length, 3);
  await using other = await gatewayWith([(stream) => fail(stream, 5)]);
  assert.equal((await call(other.port)).status, "5");
  assert.equal(other.attempts.length, 1);
});

test("a call that fails after its first message is not made again", async () => {
  await using gateway = await gatewayWith([(stream) => end(stream, 14)]);
  assert.deepEqual(await call(gateway.port), { status: "14", body: MESSAGE.toString("latin1") });
  assert.equal(gateway.attempts.length, 1);
});

test("a service decides when it is asked again, and whether", async () => {
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

test("without gRPC statuses in the policy, none is retried", async () => {
  await using gateway = await gatewayWith([(stream) => fail(stream, 14), succeed], { attempts: 2, codes: [503] });
  assert.equal((await call(gateway.port)).status, "14");
});
