import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { test } from "node:test";
import { until } from "../../../test/helpers/until.ts";
import { TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { connect } from "../../net/connect.ts";
import { admitted } from "../../net/testing/egress.ts";
import type { UpstreamEvents } from "../connections/upstream.ts";
import { UpstreamSession } from "./session.ts";
import type { UpstreamStream } from "./stream.ts";

/** The caller of one exchange, which records its events. */
class Caller implements UpstreamEvents {
  stream: UpstreamStream | undefined;
  answered = false;
  bytes = 0;
  batches = 0;
  /** How it ended. */
  end = "";
  fault: unknown;
  /** Called with each piece of the body. */
  onPiece: () => void = () => {};

  onInformational(): void {}

  onResponse(): void {
    this.answered = true;
  }

  onResponseBody(_buffer: Buffer, from: number, to: number): void {
    this.bytes += to - from;
    this.onPiece();
  }

  onResponseBatch(): void {
    this.batches++;
  }

  onResponseEnd(): void {
    this.end = "complete";
  }

  onUpstreamFailure(message: string): void {
    this.end = message;
  }

  onUpstreamDrain(): void {}

  onUpstreamFault(error: unknown): void {
    this.fault = error;
  }
}

interface Exchange extends AsyncDisposable {
  readonly caller: Caller;
  readonly session: UpstreamSession;
  /** The server's side. */
  readonly served: ServerHttp2Stream;
  /** Another exchange on the same connection; by default a POST without a body. `start`: other pseudo-header fields. */
  again(length?: number, start?: string[]): Promise<Pick<Exchange, "caller" | "served">>;
}

/** A connection to a server of this machine. */
async function connectTo(port: number): Promise<UpstreamSession> {
  const opened = Promise.withResolvers<UpstreamSession>();
  const owner = { onSettled() {}, onRoom() {}, onIdle() {}, onRetired() {}, onGone() {}, onFault: opened.reject };
  connect(admitted({ host: "127.0.0.1", port }), 0, {
    onConnect: (transport) => {
      const session = new UpstreamSession(transport, owner, {});
      opened.resolve(session);
      return session.handler;
    },
    onClose: opened.reject,
  });
  return opened.promise;
}

const FIELDS = [":method", "POST", ":scheme", "http", ":path", "/", ":authority", "a"];

/** A request in progress, whose head the server has received. */
async function exchange(length: number): Promise<Exchange> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = await connectTo((server.address() as AddressInfo).port);
  const open = async (length: number, start = FIELDS): Promise<Pick<Exchange, "caller" | "served">> => {
    const caller = new Caller();
    caller.stream = session.send(start, [], start[1] ?? "", length, caller);
    const [served] = (await once(server, "stream")) as [ServerHttp2Stream];
    served.on("error", () => {});
    return { caller, served };
  };
  const { caller, served } = await open(length);
  const dispose = async (): Promise<void> => {
    session.abort("the test is over");
    await new Promise((resolve) => server.close(resolve));
  };
  return { caller, session, served, again: (length = 0, start) => open(length, start), [Symbol.asyncDispose]: dispose };
}

test("a complete response outlives its connection, however late its caller takes it", async () => {
  await using x = await exchange(0);
  const { caller, served } = x;
  caller.onPiece = () => caller.stream?.pause();
  served.respond({ ":status": 200 });
  served.write(Buffer.alloc(10_000));
  await until(() => caller.bytes > 0);
  const first = caller.bytes;
  const { session } = served;
  served.end(Buffer.alloc(40_000));
  await once(served, "close");
  session?.destroy();
  await until(() => x.session.failure !== undefined);
  assert.deepEqual([caller.bytes, caller.end], [first, ""]);
  while (caller.end === "") caller.stream?.resume();
  assert.deepEqual([caller.bytes, caller.end], [50_000, "complete"]);
});

test("when a connection ends, requests that have not left are recognized, and their server never sees them", async () => {
  await using x = await exchange(0);
  let streams = 0;
  x.served.session?.on("stream", () => streams++);
  const late = new Caller();
  const stream = x.session.send(FIELDS, [], "POST", 0, late);
  x.session.abort("the connection is lost");
  assert.deepEqual([late.end, stream.refused], ["the connection is lost", true]);
  assert.deepEqual([x.caller.end, x.caller.stream?.refused], ["the connection is lost", false]);
  await once(x.served.session ?? x.served, "close");
  assert.equal(streams, 0);
});

test("a paused caller gets nothing, and the server is slowed down", async () => {
  await using x = await exchange(0);
  const { caller, served } = x;
  caller.onPiece = () => caller.stream?.pause();
  served.respond({ ":status": 200 });
  served.write(Buffer.alloc(1_000_000));
  await until(() => caller.bytes > 0);
  const first = caller.bytes;
  // By then, what the windows allow has arrived.
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([caller.bytes, served.writableLength], [first, 1_000_000]);
  caller.onPiece = () => {};
  caller.stream?.resume();
  await until(() => caller.bytes === 1_000_000);
  served.end();
  await until(() => caller.end === "complete");
});

test("a response before the end of the request ends the stream", async () => {
  await using x = await exchange(UNKNOWN_LENGTH);
  x.caller.stream?.sendBody(Buffer.from("begin"), 0, 5);
  x.served.respond({ ":status": 200 }, { endStream: true });
  await until(() => x.caller.end === "complete");
  await until(() => x.session.streams === 0);
  x.caller.stream?.sendBody(Buffer.from("more"), 0, 4);
  x.caller.stream?.sendEnd([]);
});

test("a caller that throws loses its exchange; others on the connection continue", async () => {
  await using x = await exchange(0);
  const { caller, session, served } = x;
  caller.onPiece = () => {
    throw new Error("a mistake");
  };
  served.respond({ ":status": 200 });
  served.write("text");
  await until(() => caller.fault !== undefined);
  await until(() => session.streams === 0);
  assert.deepEqual([String(caller.fault), caller.end, session.failure], ["Error: a mistake", "", undefined]);
});

test("a caller may give up inside an event; the connection stays in use", async () => {
  await using x = await exchange(0);
  const { caller, session, served } = x;
  caller.onPiece = () => caller.stream?.destroy();
  served.respond({ ":status": 200 });
  // More than one frame, so that a read also brings bytes after the end.
  served.end(Buffer.alloc(60_000));
  await until(() => session.streams === 0);
  assert.deepEqual([caller.end, caller.fault], ["", undefined]);
  assert.ok(caller.bytes > 0 && caller.bytes < 60_000);
  const next = await x.again();
  next.served.respond({ ":status": 200 });
  next.served.end("whole");
  await until(() => next.caller.end === "complete");
  assert.equal(next.caller.bytes, 5);
});

test("data that callers gave up on does not count against the connection's window", async () => {
  await using x = await exchange(0);
  const window = 256 * 1024;
  // More than the window of the connection allows.
  for (let i = 0; i < 110; i++) {
    const { caller, served } = i === 0 ? x : await x.again();
    caller.stream?.pause();
    served.respond({ ":status": 200 });
    let sent = false;
    served.write(Buffer.alloc(window), () => {
      sent = true;
    });
    await until(() => sent && caller.answered);
    assert.equal(caller.bytes, 0);
    caller.stream?.destroy();
    await once(served, "close");
  }
  const { caller, served } = await x.again();
  served.respond({ ":status": 200 });
  served.end(Buffer.alloc(1_000_000));
  await until(() => caller.end === "complete");
  assert.equal(caller.bytes, 1_000_000);
});

test("a body that is longer or shorter than its Content-Length is a failure, and so is one where none may be", async () => {
  await using x = await exchange(0);
  const problem = async (headers: Record<string, string | number>, body: string): Promise<string> => {
    const { caller, served } = await x.again();
    // Node.js sends what the test gives it, valid or not.
    served.respond(headers);
    served.end(body);
    await until(() => caller.end !== "");
    return caller.end;
  };
  const ok = { ":status": 200 };
  assert.match(await problem({ ...ok, "content-length": 5 }, "hello!"), /longer than its Content-Length/);
  assert.match(await problem({ ...ok, "content-length": 5 }, "hell"), /shorter than its Content-Length/);
  assert.equal(await problem({ ...ok, "content-length": 5 }, "hello"), "complete");
  assert.equal(x.session.failure, undefined);
});

test("a tunnel has no trailers: a server that sends some has broken it", async () => {
  await using x = await exchange(0);
  const { caller, served } = await x.again(TUNNEL, [":method", "CONNECT", ":authority", "a.example:443"]);
  served.respond({ ":status": 200 }, { waitForTrailers: true });
  served.on("wantTrailers", () => served.sendTrailers({ "x-trailer": "1" }));
  served.end("bytes");
  await until(() => caller.end !== "");
  assert.match(caller.end, /invalid response: .*tunnel/);
  assert.equal(x.session.failure, undefined);
});

test("a server that ends a connection because of its own mistake is named as the cause", async () => {
  await using x = await exchange(0);
  const { caller, served } = x;
  served.respond({ ":status": 200 });
  await until(() => caller.batches > 0);
  served.session?.goaway(2);
  await until(() => caller.end !== "");
  assert.equal(caller.end, "the upstream ended the connection: INTERNAL_ERROR");
});

/** Slightly more than the milliseconds after which a silent server is sent a PING. */
const SILENCE = 302_000;

test("a server that is silent for minutes while it has a request is sent a PING", async () => {
  await using x = await exchange(0);
  const { caller, session, served } = x;
  served.respond({ ":status": 200 });
  await until(() => caller.answered);
  let pings = 0;
  served.session?.on("ping", () => pings++);
  const now = performance.now();
  session.sweep(now);
  session.sweep(now + SILENCE);
  await until(() => pings === 1);
  // Its response arrived before that of this request.
  served.write("more");
  await until(() => caller.bytes === 4);
  session.sweep(now + SILENCE + 60_000);
  assert.deepEqual([session.failure, caller.end, pings], [undefined, "", 1]);
});

test("a server that does not acknowledge the PING loses the connection", async () => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    // SETTINGS and their acknowledgement, and nothing after them.
    socket.write(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0));
    socket.resume();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = await connectTo((server.address() as AddressInfo).port);
  const caller = new Caller();
  session.send(FIELDS, [], "POST", 0, caller);
  await until(() => session.settled);
  const now = performance.now();
  session.sweep(now);
  session.sweep(now + SILENCE);
  assert.equal(caller.end, "");
  session.sweep(now + SILENCE + 20_000);
  assert.equal(caller.end, "a PING was not acknowledged");
  server.close();
});
