import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawUpstream, reply, valuesOf } from "../../helpers/raw-peer.ts";
import { H2Server } from "../upstream-h2/support.ts";

type Call = ServerDuplexStream<Buffer, Uint8Array>;

/** An empty message with its prefix. */
const MESSAGE = Buffer.alloc(5);

interface Answer {
  readonly headers: IncomingMessage["headers"];
  readonly trailers: IncomingMessage["trailers"];
}

/** A call by HTTP/1.1 with a deadline, read to its end. */
async function call(port: number, method: string, timeout: string, type = "application/grpc"): Promise<Answer> {
  const headers = { "content-type": type, te: "trailers", connection: "te", "grpc-timeout": timeout };
  const options = { host: "127.0.0.1", port, path: `/test.Slow/${method}`, method: "POST", agent: false, headers };
  const opened = request(options);
  opened.end(MESSAGE);
  const [response] = (await once(opened, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return { headers: response.headers, trailers: response.trailers };
}

/** Repeats a call with longer deadlines until it reaches the backend in time, which may take longer on a slow machine. */
async function callInTime(inTime: (answer: Answer) => boolean, port: number, method: string): Promise<Answer> {
  for (let ms = 50; ; ms *= 2) {
    const answer = await call(port, method, `${ms}m`);
    if (inTime(answer) || ms > 5000) return answer;
  }
}

function gatewayTo(port: number, policies: object = {}): Promise<LocalGateway> {
  const backend = { host: `127.0.0.1:${port}`, policies: { http: { version: "HTTP/2.0" } } };
  return LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes: [{ policies, backends: [backend] }] }] }] });
}

/** A service that leaves calls open, and counts them and those that are cancelled. */
async function slowServer() {
  let calls = 0;
  let cancelled = 0;
  const note = (stream: Call): void => {
    calls++;
    stream.on("cancelled", () => cancelled++);
    stream.on("error", () => {});
    stream.resume();
  };
  const server = await GrpcServer.start({
    "/test.Slow/Silent": { stream: note },
    "/test.Slow/Half": {
      stream(stream: Call) {
        note(stream);
        stream.write(Buffer.from("half"));
      },
    },
    "/test.Slow/Quick": {
      stream(stream: Call) {
        note(stream);
        stream.end();
      },
    },
  });
  return {
    port: server.port,
    get calls() {
      return calls;
    },
    get cancelled() {
      return cancelled;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("a call whose deadline passes before the response ends with DEADLINE_EXCEEDED, and the call to the backend is cancelled", async () => {
  let calls = 0;
  let cancelled = 0;
  // Not a gRPC server: that would end the call itself when its deadline passes.
  await using server = await H2Server.start((stream) => {
    calls++;
    stream.on("close", () => cancelled++);
  });
  await using gateway = await gatewayTo(server.port);
  const { headers } = await callInTime(() => calls > 0, gateway.port(), "Silent");
  assert.deepEqual([headers["grpc-status"], headers["grpc-message"]], ["4", "deadline%20exceeded"]);
  await gateway.until(() => calls > 0 && cancelled === calls, "the cancellation");
  const line = gateway.lines.at(-1);
  assert.deepEqual([line?.reason, line?.["grpc.status"]], ["Timeout", 4]);
});

test("the deadline also covers the stream: its status comes after the messages", async () => {
  await using server = await slowServer();
  await using gateway = await gatewayTo(server.port);
  const inTime = ({ headers }: Answer): boolean => headers["grpc-status"] === undefined;
  const { headers, trailers } = await callInTime(inTime, gateway.port(), "Half");
  assert.equal(headers["grpc-status"], undefined);
  assert.equal(trailers["grpc-status"], "4");
  await gateway.until(() => server.cancelled === server.calls, "the cancellation");
});

test("gRPC-Web calls have deadlines too, with the status in the last frame", async () => {
  await using server = await slowServer();
  await using gateway = await gatewayTo(server.port, { grpcWeb: {} });
  await call(gateway.port(), "Half", "100m", "application/grpc-web");
  await gateway.until(() => gateway.lines.length > 0, "the end of the call");
  assert.equal(gateway.lines.at(-1)?.["grpc.status"], 4);
});

test("a deadline that passes is not a failure of the endpoint", async () => {
  await using server = await slowServer();
  await using gateway = await gatewayTo(server.port);
  await call(gateway.port(), "Silent", "1m");
  await gateway.until(() => gateway.endpoints()[0]?.pending === 0, "the end of the call");
  assert.equal(gateway.endpoints()[0]?.health, 1);
});

test("the backend gets what a policy has left of the deadline", async () => {
  const seen: string[] = [];
  await using upstream = await RawUpstream.answering((received) => {
    seen.push(valuesOf(received, "grpc-timeout").join());
    return reply("", ["Content-Type: application/grpc", "grpc-status: 0"]);
  });
  const backend = { host: `127.0.0.1:${upstream.port}`, policies: { http: { version: "HTTP/1.1" } } };
  const routes = [{ policies: { delay: { duration: "20ms" } }, backends: [backend] }];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  await call(gateway.port(), "Quick", "30S");
  const left = Number(/^(\d+)m$/.exec(seen[0] ?? "")?.[1]);
  assert.ok(left > 0 && left <= 29_980, seen[0]);
});

test("a malformed deadline is rejected instead of ignored", async () => {
  await using server = await slowServer();
  await using gateway = await gatewayTo(server.port);
  for (const timeout of ["1s", "123456789m", "-1S", ""]) {
    const { headers } = await call(gateway.port(), "Quick", timeout);
    assert.deepEqual([headers["grpc-status"], headers["grpc-message"]], ["13", "invalid%20request"], timeout);
  }
  assert.equal(server.calls, 0);
});
