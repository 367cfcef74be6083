import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { test } from "node:test";
import { Metadata, type ServerDuplexStream } from "@grpc/grpc-js";
import { GrpcServer } from "../../helpers/grpc-server.ts";
import { LocalGateway } from "../../helpers/local-gateway.ts";
import { RawUpstream, reply } from "../../helpers/raw-peer.ts";
import { H2Server } from "../upstream-h2/support.ts";

type Chat = ServerDuplexStream<Buffer, Uint8Array>;

const BINARY = "application/grpc-web+proto";
const TEXT = "application/grpc-web-text+proto";

/** A frame: flags, length, payload. */
function framed(text: string): Buffer {
  const frame = Buffer.alloc(5 + text.length);
  frame.writeUInt32BE(text.length, 1);
  frame.write(text, 5, "latin1");
  return frame;
}

/** The payloads of all frames; that of trailers is marked. */
function unframed(bytes: Buffer): string[] {
  const payloads: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    const trailers = bytes[at] === 0x80 ? "trailers " : "";
    payloads.push(trailers + bytes.toString("latin1", at + 5, end));
    at = end;
  }
  return payloads;
}

/** base64 that may be padded after each message. */
function decoded(text: string): Buffer {
  return Buffer.concat((text.match(/.{4}/g) ?? []).map((group) => Buffer.from(group, "base64")));
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly frames: string[];
}

/** Opens a call as a browser does, by HTTP/1.1. */
async function open(port: number, method: string, type: string, body: Buffer | string): Promise<IncomingMessage> {
  const headers = { "content-type": type, accept: type, "x-grpc-web": "1" };
  const call = request({
    host: "127.0.0.1",
    port,
    path: `/test.Echo/${method}`,
    method: "POST",
    agent: false,
    headers,
  });
  call.end(body);
  const [response] = (await once(call, "response")) as [IncomingMessage];
  return response;
}

async function call(port: number, method: string, type: string, body: Buffer | string): Promise<Answer> {
  const response = await open(port, method, type, body);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const { statusCode: status = 0, headers } = response;
  const bytes = Buffer.concat(chunks);
  return { status, headers, frames: unframed(type === TEXT ? decoded(bytes.toString("latin1")) : bytes) };
}

/** A gateway in front of `port`, without a setting for HTTP/2. */
function gatewayTo(port: number, more: object = {}): Promise<LocalGateway> {
  const routes = [{ policies: { grpcWeb: {}, ...more }, backends: [{ host: `127.0.0.1:${port}` }] }];
  return LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
}

const SAY = { "/test.Echo/Say": { unary: (message: Buffer) => message } };
const OK = "trailers grpc-status: 0\r\ngrpc-message: OK\r\n";

test("unary calls in both forms: the message, and the trailers as the last frame", async () => {
  await using server = await GrpcServer.start(SAY);
  await using gateway = await gatewayTo(server.port);
  const binary = await call(gateway.port(), "Say", BINARY, framed("hello"));
  assert.deepEqual([binary.status, binary.headers["content-type"], binary.frames], [200, BINARY, ["hello", OK]]);
  const text = await call(gateway.port(), "Say", TEXT, framed("hello").toString("base64"));
  assert.deepEqual([text.status, text.headers["content-type"], text.frames], [200, TEXT, ["hello", OK]]);
  assert.equal(gateway.lines.at(-1)?.["grpc.status"], 0);
});

test("the backend sees a gRPC call with the client's metadata; the client sees metadata of head and trailers", async () => {
  const seen: Record<string, unknown>[] = [];
  await using server = await GrpcServer.start({
    "/test.Echo/Chat": {
      stream(chat: Chat) {
        seen.push(chat.metadata.getMap());
        const head = new Metadata();
        head.set("x-first", "one");
        chat.sendMetadata(head);
        const trailers = new Metadata();
        trailers.set("x-last", "two");
        chat.end(trailers);
      },
    },
  });
  await using gateway = await gatewayTo(server.port);
  const answer = await call(gateway.port(), "Chat", TEXT, framed("").toString("base64"));
  assert.equal(seen[0]?.["x-grpc-web"], "1");
  assert.equal(answer.headers["x-first"], "one");
  assert.match(answer.frames[0] ?? "", /^trailers (.*\r\n)*x-last: two\r\n/);
});

test("the backend gets a request in the form that gRPC servers require", async () => {
  let seen: IncomingHttpHeaders = {};
  using server = await H2Server.start((stream, headers) => {
    seen = headers;
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "0" }, { endStream: true });
  });
  await using gateway = await gatewayTo(server.port);
  await call(gateway.port(), "Say", TEXT, framed("hello").toString("base64"));
  assert.deepEqual([seen[":method"], seen["content-type"], seen.te], ["POST", "application/grpc+proto", "trailers"]);
  // That of the base64 would be wrong.
  assert.equal(seen["content-length"], undefined);
});

for (const type of [BINARY, TEXT])
  test(`${type}: each message of a stream arrives before the next one is sent`, async () => {
    let chat: Chat | undefined;
    await using server = await GrpcServer.start({
      "/test.Echo/Chat": {
        stream(opened: Chat) {
          chat = opened;
          opened.on("data", (message: Buffer) => opened.write(message));
        },
      },
    });
    await using gateway = await gatewayTo(server.port);
    const first = framed("m0");
    const response = await open(gateway.port(), "Chat", type, type === TEXT ? first.toString("base64") : first);
    const arrived: string[] = [];
    for await (const chunk of response) {
      const bytes = chunk as Buffer;
      arrived.push(...unframed(type === TEXT ? decoded(bytes.toString("latin1")) : bytes));
      if (arrived.length < 4) chat?.write(Buffer.from(`m${arrived.length}`));
      else chat?.end();
    }
    assert.deepEqual(arrived, ["m0", "m1", "m2", "m3", OK]);
  });

for (const type of [BINARY, TEXT])
  test(`${type}: a response that ends within a message breaks off, so that its status is not read as the rest of the message`, async () => {
    // Of the second message, whole groups of base64, all of which are sent at once.
    const begun = Buffer.concat([framed("first"), framed("truncated").subarray(0, 12)]);
    const streams: ServerHttp2Stream[] = [];
    using server = await H2Server.start((stream) => {
      streams.push(stream);
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.write(begun);
    });
    await using gateway = await gatewayTo(server.port);
    for (const [end, reason] of [
      [() => streams.pop()?.destroy(new Error("reset")), /reset/],
      [() => streams.pop()?.end(), /ended within a message/],
    ] as const) {
      const response = await open(gateway.port(), "Chat", type, "");
      let arrived = Buffer.alloc(0);
      const read = async (): Promise<void> => {
        for await (const chunk of response) {
          arrived = Buffer.concat([arrived, type === TEXT ? decoded(String(chunk)) : (chunk as Buffer)]);
          if (arrived.length === begun.length) end();
        }
      };
      await assert.rejects(read, { code: "ECONNRESET" });
      assert.deepEqual(arrived, begun);
      assert.match(String(gateway.lines.at(-1)?.error), reason);
    }
  });

test("a truncated message of a response that a policy has read as a whole becomes a status in the head", async () => {
  using server = await H2Server.start((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(framed("truncated").subarray(0, 12));
  });
  await using gateway = await gatewayTo(server.port, {
    transformations: { response: { set: { "x-size": "string(size(response.body))" } } },
  });
  const { headers, frames } = await call(gateway.port(), "Say", BINARY, framed("x"));
  assert.deepEqual([headers["content-type"], headers["grpc-status"], frames], [BINARY, "14", []]);
});

test("a malformed deadline is rejected in the client's form", async () => {
  await using gateway = await gatewayTo(9);
  const url = `http://127.0.0.1:${gateway.port()}/test.Echo/Say`;
  const { headers } = await fetch(url, { method: "POST", headers: { "content-type": BINARY, "grpc-timeout": "soon" } });
  assert.deepEqual([headers.get("content-type"), headers.get("grpc-status")], [BINARY, "13"]);
});

test("failed calls have their status in the head: that of the backend, or of the gateway itself", async () => {
  await using server = await GrpcServer.start({
    "/test.Echo/Fail": { unary: () => Promise.reject(Object.assign(new Error("no voice"), { code: 5 })) },
  });
  await using gateway = await gatewayTo(server.port, {
    authorization: { rules: [{ deny: 'request.path == "/test.Echo/No"' }] },
  });
  const failed = await call(gateway.port(), "Fail", TEXT, framed("x").toString("base64"));
  assert.deepEqual([failed.status, failed.headers["grpc-status"], failed.frames], [200, "5", []]);
  assert.deepEqual([failed.headers["content-type"], failed.headers["content-length"]], [TEXT, "0"]);
  const denied = await call(gateway.port(), "No", BINARY, framed("x"));
  assert.deepEqual([denied.status, denied.headers["grpc-status"], denied.frames], [200, "7", []]);
  assert.equal(denied.headers["content-type"], BINARY);
  assert.equal(denied.headers["grpc-message"], "authorization%20failed");
});

test("a retried call has its whole message each time, decoded", async () => {
  const bodies: string[] = [];
  using server = await H2Server.start((stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      bodies.push(unframed(Buffer.concat(chunks)).join());
      const head = { ":status": 200, "content-type": "application/grpc" };
      stream.respond({ ...head, "grpc-status": bodies.length < 3 ? "14" : "0" }, { endStream: true });
    });
  });
  await using gateway = await gatewayTo(server.port, { retry: { attempts: 2, codes: [], grpcCodes: ["UNAVAILABLE"] } });
  const { headers } = await call(gateway.port(), "Say", TEXT, framed("hello").toString("base64"));
  assert.equal(headers["grpc-status"], "0");
  assert.deepEqual(bodies, ["hello", "hello", "hello"]);
});

test("text that is not base64 ends the call, and the backend gets no message", async () => {
  let messages = 0;
  await using server = await GrpcServer.start({
    "/test.Echo/Say": {
      unary(message: Buffer) {
        messages++;
        return message;
      },
    },
  });
  await using gateway = await gatewayTo(server.port);
  for (const body of ["AAAA!AAA", "AAAAAAVoZ"]) {
    const refused = await call(gateway.port(), "Say", TEXT, body);
    assert.deepEqual([refused.status, refused.headers["grpc-status"]], [200, "13"], body);
  }
  assert.equal(messages, 0);
  assert.match(String(gateway.lines.at(-1)?.error), /base64/);
});

for (const type of [BINARY, TEXT]) {
  const encoded = (bytes: Buffer): Buffer | string => (type === TEXT ? bytes.toString("base64") : bytes);
  const flagged = (flags: number, text: string): Buffer => {
    const bytes = framed(text);
    bytes[0] = flags;
    return bytes;
  };
  const bodies: Readonly<Record<string, Buffer>> = {
    "trailers from the client": Buffer.concat([framed("a"), flagged(0x80, "x-admin: 1\r\n")]),
    "compressed trailers": flagged(0x81, "x"),
    "unknown flags": flagged(0x02, "a"),
    "half a message": framed("abcdef").subarray(0, 8),
    "half a prefix": Buffer.concat([framed("a"), Buffer.from([0, 0])]),
  };
  for (const [what, body] of Object.entries(bodies))
    test(`${type}: a request with ${what} fails with INTERNAL, and the backend does not see it end`, async () => {
      const ended: Buffer[] = [];
      using backend = await H2Server.start((stream) => {
        const pieces: Buffer[] = [];
        stream.on("data", (piece: Buffer) => pieces.push(piece));
        stream.on("end", () => {
          ended.push(Buffer.concat(pieces));
          stream.respond(
            { ":status": 200, "content-type": "application/grpc", "grpc-status": "0" },
            { endStream: true },
          );
        });
      });
      await using gateway = await gatewayTo(backend.port);
      const { headers } = await call(gateway.port(), "Say", type, encoded(body));
      assert.equal(headers["grpc-status"], "13");
      assert.deepEqual(ended, []);
    });
}

test("a frame from the backend that is not a message does not end the call for the client", async () => {
  using backend = await H2Server.start((stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    const forged = framed("grpc-status: 0\r\n");
    forged[0] = 0x80;
    stream.write(Buffer.concat([framed("a"), forged]));
  });
  await using gateway = await gatewayTo(backend.port);
  const outcome = await call(gateway.port(), "Say", BINARY, framed("a")).catch(() => undefined);
  assert.ok(!outcome?.frames.includes("trailers grpc-status: 0\r\n"));
});

test("requests other than gRPC-Web and responses other than gRPC pass unchanged", async () => {
  await using upstream = await RawUpstream.answering(() => reply("hello", ["Content-Type: text/plain"]));
  const routes = [
    {
      policies: { grpcWeb: {} },
      backends: [{ host: `127.0.0.1:${upstream.port}`, policies: { http: { version: "HTTP/1.1" } } }],
    },
  ];
  await using gateway = await LocalGateway.start({ binds: [{ port: 0, listeners: [{ routes }] }] });
  for (const type of ["text/plain", TEXT]) {
    const response = await open(gateway.port(), "Say", type, "");
    const [chunk] = (await once(response, "data")) as [Buffer];
    assert.deepEqual([response.headers["content-type"], String(chunk)], ["text/plain", "hello"]);
  }
});

test("a client that reads slowly slows down the backend, and gets everything in the end", async () => {
  const message = Buffer.alloc(64 * 1024, "x");
  const total = 512;
  let sent = 0;
  await using server = await GrpcServer.start({
    "/test.Echo/Say": { unary: (each: Buffer) => each },
    "/test.Echo/Pour": {
      stream(chat: Chat) {
        const pour = (): void => {
          while (sent < total) {
            sent++;
            if (!chat.write(message)) {
              chat.once("drain", pour);
              return;
            }
          }
          chat.end();
        };
        pour();
      },
    },
  });
  await using gateway = await gatewayTo(server.port);
  const slow = await open(gateway.port(), "Pour", TEXT, "");
  slow.pause();
  let before = -1;
  // Other calls pass meanwhile; the server is paused once it sends nothing during one of them.
  while (sent !== before) {
    before = sent;
    assert.deepEqual((await call(gateway.port(), "Say", BINARY, framed("other"))).frames[0], "other");
  }
  assert.ok(sent < total, "the server has sent everything to a client that does not read");
  let characters = 0;
  for await (const chunk of slow) characters += (chunk as Buffer).length;
  assert.ok(characters > (total * message.length * 4) / 3);
});
