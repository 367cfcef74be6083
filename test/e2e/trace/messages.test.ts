import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { WebSocket, WebSocketServer } from "ws";
import type { FollowRequest } from "../../../src/admin/client/client.ts";
import { proxyTo, TestGateway } from "../../helpers/gateway.ts";
import { GrpcClient } from "../../helpers/grpc-client.ts";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { NodeClient } from "../http2/support.ts";
import type { Followed } from "./following.ts";
import { admin, rawClient, traceOf } from "./support.ts";

type Message = Followed["message"];

const OF_MESSAGES: readonly string[] = ["streamMessage", "messagesOmitted", "messagesUnreadable"];

/** The events of a stream as they arrive. */
class Following implements AsyncDisposable {
  readonly #events: AsyncIterator<{ readonly raw: string }>;
  readonly #abort: AbortController;

  private constructor(events: AsyncIterable<{ readonly raw: string }>, abort: AbortController) {
    this.#events = events[Symbol.asyncIterator]();
    this.#abort = abort;
  }

  static async of(gateway: TestGateway, request: FollowRequest): Promise<Following> {
    const abort = new AbortController();
    const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(60_000)]);
    const stream = admin(gateway).follow({ ...request, signal });
    await stream.opened;
    return new Following(stream, abort);
  }

  async next(): Promise<Message> {
    const next = await this.#events.next();
    assert.ok(next.done !== true, "the stream has ended");
    return (JSON.parse(next.value.raw) as Followed).message;
  }

  /** The next `count` events about messages. */
  async messages(count: number): Promise<Message[]> {
    const seen: Message[] = [];
    while (seen.length < count) {
      const message = await this.next();
      assert.notEqual(message.type, "requestFinished", `after ${seen.length} of ${count}`);
      if (OF_MESSAGES.includes(message.type)) seen.push(message);
    }
    return seen;
  }

  /** Everything up to the end of the first request. */
  async rest(): Promise<Message[]> {
    for (const seen: Message[] = []; ; ) {
      const message = await this.next();
      seen.push(message);
      if (message.type === "requestFinished") return seen;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
  }
}

/** In the order of their number, those from the client first. */
function ordered(messages: readonly Message[]): Message[] {
  const place = (message: Message): number =>
    message.type === "streamMessage" ? message.number + (message.direction === "sent" ? 1000 : 0) : 0;
  return [...messages].sort((a, b) => place(a) - place(b));
}

async function connect(gateway: TestGateway, compressed = false): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port()}/chat`, { perMessageDeflate: compressed });
  await once(socket, "open");
  return socket;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

suite("messages of a WebSocket", () => {
  let server: WebSocketServer;
  let gateway: TestGateway;

  before(async () => {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: { threshold: 64 } });
    server.on("connection", (socket) => {
      socket.on("error", () => {});
      socket.on("message", (data, binary) => socket.send(data, { binary, compress: true }));
    });
    await once(server, "listening");
    gateway = await TestGateway.start(proxyTo(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
  after(async () => {
    await gateway.stop();
    server.close();
  });

  test("are seen while it is open, and its end with the code", async () => {
    await using following = await Following.of(gateway, { bodies: 8 });
    const socket = await connect(gateway);
    socket.send("hello");
    const text = { type: "streamMessage", number: 1, bytes: 5, opcode: "text", body: base64("hello") };
    assert.deepEqual(ordered(await following.messages(2)), [
      { ...text, direction: "received" },
      { ...text, direction: "sent" },
    ]);
    socket.send(Buffer.from("0123456789"));
    const binary = {
      type: "streamMessage",
      number: 2,
      bytes: 10,
      opcode: "binary",
      body: base64("01234567"),
      truncated: true,
    };
    assert.deepEqual(ordered(await following.messages(2)), [
      { ...binary, direction: "received" },
      { ...binary, direction: "sent" },
    ]);
    socket.ping("there?");
    assert.deepEqual(
      ordered(await following.messages(2)).map(
        (each) => each.type === "streamMessage" && [each.direction, each.opcode],
      ),
      [
        ["received", "ping"],
        ["sent", "pong"],
      ],
    );
    socket.close(1001, "bye");
    const [close] = await following.messages(1);
    assert.deepEqual(close, {
      type: "streamMessage",
      direction: "received",
      number: 4,
      bytes: 5,
      opcode: "close",
      closeCode: 1001,
      body: base64("bye"),
    });
    assert.equal((await following.rest()).at(-1)?.type, "requestFinished");
  });

  test("without bodies no content is shown; a compressed message says so", async () => {
    await using following = await Following.of(gateway, {});
    const socket = await connect(gateway, true);
    socket.send("a".repeat(1000));
    const [received, sent] = ordered(await following.messages(2));
    assert.ok(received?.type === "streamMessage" && sent?.type === "streamMessage");
    assert.ok(!("body" in received) && !("body" in sent));
    assert.equal(sent.compressed, true);
    assert.ok(sent.bytes < 100, "the size is that of the bytes that were sent");
    socket.terminate();
  });

  test("a flood is counted exactly, and passes", async () => {
    await using following = await Following.of(gateway, {});
    const socket = await connect(gateway);
    let echoes = 0;
    socket.on("message", () => {
      echoes++;
      if (echoes === 2000) socket.close();
    });
    for (let index = 0; index < 2000; index++) socket.send("12345");
    const seen = await following.rest();
    assert.equal(echoes, 2000);
    const shown = seen.filter((each) => each.type === "streamMessage");
    const omitted = seen.filter((each) => each.type === "messagesOmitted");
    assert.ok(shown.length < 2000, "not all are shown");
    for (const direction of ["received", "sent"] as const) {
      const ofDirection = shown.filter((each) => each.direction === direction);
      const left = omitted.reduce((sum, each) => sum + each[direction].messages, 0);
      assert.equal(ofDirection.length + left, 2001, "with the close");
    }
  });

  test("bytes that are not frames pass, and the follower is told", async () => {
    await using following = await Following.of(gateway, {});
    const client = await rawClient(
      gateway.port(),
      "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await once(client, "data");
    client.write(Buffer.from([0x81, 0x01, 0x61]));
    const messages = await following.messages(2);
    assert.deepEqual(messages[0], {
      type: "messagesUnreadable",
      direction: "received",
      reason: "a frame of the client is not masked",
    });
    assert.ok(messages[1]?.type === "streamMessage" && messages[1].closeCode === 1002, "the server has seen them");
    client.destroy();
  });

  test("over HTTP/2 they are seen too", async () => {
    await using following = await Following.of(gateway, { bodies: 8 });
    await using client = await NodeClient.connect(gateway.port());
    if (client.session.remoteSettings.enableConnectProtocol !== true) await once(client.session, "remoteSettings");
    const stream = client.open({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/chat",
      "sec-websocket-version": "13",
    });
    await once(stream, "response");
    stream.write(Buffer.concat([Buffer.of(0x81, 0x82, 1, 2, 3, 4), Buffer.of(0x68 ^ 1, 0x69 ^ 2)]));
    const text = { type: "streamMessage", number: 1, bytes: 2, opcode: "text", body: base64("hi") };
    assert.deepEqual(ordered(await following.messages(2)), [
      { ...text, direction: "received" },
      { ...text, direction: "sent" },
    ]);
    stream.close();
  });

  test("the stream of one request has no events about messages, also while somebody follows it", async () => {
    await using following = await Following.of(gateway, {});
    const events = await traceOf(gateway, async () => {
      const socket = await connect(gateway);
      socket.send("hello");
      await following.messages(2);
      socket.close();
    });
    assert.equal(events.at(-1)?.message.type, "requestFinished");
    assert.deepEqual(
      events.filter(({ message }) => OF_MESSAGES.includes(message.type)),
      [],
    );
  });
});

test("messages of a gRPC stream are seen while it is open, in both directions", async (t) => {
  await using server = await GrpcServer.start({
    "/test.Echo/Chat": {
      stream(call: ServerDuplexStream<Buffer, Uint8Array>) {
        call.on("data", (message: Buffer) => call.write(Buffer.from(`${message}!`)));
        call.on("end", () => call.end());
      },
    },
  });
  const gateway = await TestGateway.start(proxyTo(`127.0.0.1:${server.port}`));
  t.after(() => gateway.stop());
  using client = new GrpcClient(gateway.port());
  await using following = await Following.of(gateway, { bodies: 100 });
  const call = client.bidi("/test.Echo/Chat");
  call.resume();
  const status = once(call, "status");
  for (const number of [1, 2]) {
    call.write(Buffer.from(`message ${number}`));
    assert.deepEqual(ordered(await following.messages(2)), [
      { type: "streamMessage", direction: "received", number, bytes: 9, body: base64(`message ${number}`) },
      { type: "streamMessage", direction: "sent", number, bytes: 10, body: base64(`message ${number}!`) },
    ]);
  }
  call.end();
  const finished = (await following.rest()).at(-1);
  assert.ok(finished?.type === "requestFinished");
  assert.deepEqual(finished.grpc, { status: 0, requestMessages: 2, responseMessages: 2 });
  await status;
});

test("a response to a gRPC call that is not gRPC has no messages", async (t) => {
  await using upstream = await RawUpstream.answering(() =>
    reply("<html>not gRPC</html>", ["Content-Type: text/html"], "502 Bad Gateway"),
  );
  const gateway = await TestGateway.start(proxyTo(`127.0.0.1:${upstream.port}`));
  t.after(() => gateway.stop());
  await using following = await Following.of(gateway, {});
  const client = await rawClient(
    gateway.port(),
    "POST /test.Echo/Say HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/grpc\r\nContent-Length: 7\r\n\r\n\0\0\0\0\x02hi",
  );
  const seen = (await following.rest()).filter(({ type }) => OF_MESSAGES.includes(type));
  assert.deepEqual(seen, [{ type: "streamMessage", direction: "received", number: 1, bytes: 2 }]);
  client.destroy();
});
