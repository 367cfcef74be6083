import assert from "node:assert/strict";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer, Socket, type SocketConstructorOpts } from "node:net";
import { PassThrough } from "node:stream";
import { suite, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { constants, createGzip, createZstdCompress, gunzipSync, zstdDecompressSync } from "node:zlib";
import { RawPeer } from "../../test/helpers/raw-peer.ts";
import { until } from "../../test/helpers/until.ts";
import { appRoot } from "../base/app-root.ts";
import { connect } from "./connect.ts";
import {
  DOCUMENTED,
  describeMissing,
  latin1Slice,
  latin1Write,
  missingInternals,
  probe,
  sockets,
} from "./node-internals.ts";
import { tlsServers } from "./node-internals-tls.ts";
import { bodyEncoder } from "./node-internals-zlib.ts";
import { pooledCopy, READ_SIZE } from "./read-buffer.ts";
import { acceptLocally } from "./testing/acceptor.ts";
import { admitted } from "./testing/egress.ts";
import type { Transport, TransportHandler } from "./transport.ts";

const SAMPLE = Buffer.from([0x41, 0xe9, 0xff]);

suite("the self-check", () => {
  test("finds everything in the Node that the project is pinned to", () => {
    assert.deepEqual(missingInternals, []);
    const found = probe(SAMPLE, Socket);
    assert.deepEqual(new Set(Object.values(found)), new Set([true]));
  });

  test("finds what a later Node lacks or does differently, and says what that costs", () => {
    const bare = Object.create(null) as Buffer;
    const renamed = Object.defineProperties(Buffer.from(SAMPLE), {
      latin1Slice: { value: () => "something else" },
      latin1Write: { value: () => 0 },
    });
    class OtherSocket extends Socket {
      constructor(options?: SocketConstructorOpts) {
        const { handle: _ignored, ...others } = options ?? {};
        super(others);
      }
    }
    const { buffers, ...others } = probe(renamed, OtherSocket);
    assert.deepEqual([buffers, others.latin1Slice, others.latin1Write], [false, false, false]);
    assert.deepEqual(
      describeMissing({ buffers, ...others }).map(({ name }) => name),
      ["Buffer.latin1Slice", "Buffer.latin1Write", "buffers of sockets", "stream_wrap"],
    );
    const none = probe(bare, class {} as typeof Socket);
    assert.equal(describeMissing(none).length, 6);
  });
});

test("encoders that lack what is needed, or fail, leave bodies to documented functions", () => {
  const end = { flush: constants.Z_FINISH, reset: true };
  assert.equal(bodyEncoder(new PassThrough(), end, 100), undefined);
  for (const [stream, options, decode] of [
    [createGzip(), end, gunzipSync],
    [createZstdCompress(), { flush: constants.ZSTD_e_end, reset: false }, zstdDecompressSync],
  ] as const) {
    const encode = bodyEncoder(stream, options, 100);
    assert.equal(encode?.(Buffer.alloc(101)), undefined);
    for (const text of ["hello", "hello again"]) assert.equal(String(decode(encode?.(Buffer.from(text)) ?? "")), text);
    stream.destroy();
    assert.equal(encode?.(Buffer.from("hello")), undefined);
  }
  // Without a reset it has ended.
  const once = bodyEncoder(createGzip(), { flush: constants.Z_FINISH, reset: false }, 100);
  assert.deepEqual(
    ["a", "b", "c"].map((text) => once?.(Buffer.from(text)) === undefined),
    [false, true, true],
  );
});

test("text and bytes are the same with documented API", () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  assert.equal(latin1Slice(bytes, 3, 250), DOCUMENTED.latin1Slice(bytes, 3, 250));
  const text = bytes.toString("latin1");
  for (const write of [latin1Write, DOCUMENTED.latin1Write]) {
    const target = Buffer.alloc(256);
    write(target, text, 0);
    assert.deepEqual(target, bytes);
  }
});

/** One accepted connection and its client. */
interface Pair extends AsyncDisposable {
  readonly transport: Transport;
  readonly client: RawPeer;
  /** The buffers that reads have delivered. */
  readonly buffers: readonly Buffer[];
}

async function acceptOne(): Promise<Pair> {
  const { promise, resolve } = Promise.withResolvers<Transport>();
  const buffers: Buffer[] = [];
  const acceptor = await acceptLocally((transport): TransportHandler => {
    resolve(transport);
    return {
      onData: (buffer, length) => {
        buffers.push(buffer);
        transport.write(buffer, 0, length);
      },
      onEnd: () => transport.end(),
      onDrain: () => {},
      onClose: () => {},
      onFault: (error) => assert.fail(String(error)),
    };
  });
  const client = await RawPeer.connect(acceptor.port);
  const transport = await promise;
  return {
    transport,
    client,
    buffers,
    async [Symbol.asyncDispose]() {
      client.socket.destroy();
      transport.destroy();
      acceptor.close();
    },
  };
}

suite("accepted connections", () => {
  test("read into the gateway's buffers, the same one again and again", async () => {
    await using pair = await acceptOne();
    for (const text of ["one", "two", "three"]) {
      pair.client.send(text);
      assert.equal(await pair.client.take(text), text);
    }
    assert.equal(pair.buffers.length, 3);
    assert.equal(new Set(pair.buffers).size, 1);
  });

  test("read by events where a socket takes no reader", async (t) => {
    t.mock.method(sockets, "readInto", DOCUMENTED.readInto);
    await using pair = await acceptOne();
    for (const text of ["one", "two", "three"]) {
      pair.client.send(text);
      assert.equal(await pair.client.take(text), text);
    }
    assert.equal(new Set(pair.buffers).size, 3);
    pair.client.end();
    assert.equal(await pair.client.closed(), "end");
  });

  test("show a reset while nothing is read; without internals they cannot", async (t) => {
    await using pair = await acceptOne();
    const { transport, client } = pair;
    transport.pause();
    assert.equal(transport.wasReset, false);
    client.reset();
    await once(client.socket, "close");
    // The reset has left this process through the loopback device; the next turn of the event loop sees it.
    for (let turn = 0; turn < 1000 && !transport.wasReset; turn++) await new Promise(setImmediate);
    assert.equal(transport.wasReset, true);
    t.mock.method(sockets, "wasReset", DOCUMENTED.wasReset);
    assert.equal(transport.wasReset, false);
  });
});

/** Writes bytes and text alternately to a peer that reads nothing until writing has to pause; returns what it gets. */
async function writeToSlowReader(): Promise<{ readonly sent: string; readonly received: string }> {
  const server = createServer({ pauseOnConnect: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const accepted = once(server, "connection");
  const drained = Promise.withResolvers<void>();
  const connected = Promise.withResolvers<Transport>();
  connect(admitted({ host: "127.0.0.1", port }), 0, {
    onConnect(transport) {
      connected.resolve(transport);
      return {
        onData: () => {},
        onEnd: () => {},
        onDrain: () => drained.resolve(),
        onClose: () => {},
        onFault: (error) => assert.fail(String(error)),
      };
    },
    onClose: (error) => assert.fail(String(error)),
  });
  const [transport, [socket]] = await Promise.all([connected.promise, accepted as Promise<[Socket]>]);
  let sent = "";
  for (let round = 0, more = true; more; round++) {
    const line = `${round} `.repeat(20_000);
    const kind = round % 4;
    if (kind === 0) more = transport.writeText(line);
    else if (kind === 1) more = transport.write(Buffer.from(line), 0, line.length);
    else if (kind === 2) more = transport.send(Buffer.from(line), () => {});
    else {
      transport.gatherText(line.slice(0, 3));
      transport.gather(Buffer.from(line), 3, 100);
      transport.gather(Buffer.from(line), 100, line.length);
      more = transport.flush();
    }
    sent += line;
  }
  // After the waiting bytes, in order.
  transport.writeText("text ");
  transport.write(Buffer.from("bytes "), 0, 6);
  transport.gatherText("gathered ");
  transport.gather(Buffer.from("pieces "), 0, 7);
  transport.flush();
  transport.writeText("end");
  sent += "text bytes gathered pieces end";
  assert.equal(transport.bytesWritten, sent.length);
  const { backlog } = transport;
  assert.ok(backlog > 64 * 1024 && backlog < sent.length, `${backlog} of ${sent.length}`);
  const peer = new RawPeer(socket);
  socket.resume();
  await Promise.race([drained.promise, peer.until(() => false, "a drain")]);
  assert.equal(transport.backlog, 0);
  transport.end();
  await peer.until(() => peer.received.length >= sent.length, "everything");
  assert.equal(await peer.closed(), "end");
  transport.destroy();
  server.close();
  return { sent, received: peer.received };
}

suite("writes", () => {
  test("reach a slow reader in their order, and say when to pause, go on and what waits", async () => {
    const { sent, received } = await writeToSlowReader();
    assert.ok(received === sent);
  });

  test("do the same through the stream", async (t) => {
    t.mock.method(sockets, "directWrites", DOCUMENTED.directWrites);
    const { sent, received } = await writeToSlowReader();
    assert.ok(received === sent);
  });

  test("continue after `end`, and the FIN follows them", async () => {
    await using pair = await acceptOne();
    const { transport, client } = pair;
    const large = "x".repeat(8 * 1024 * 1024);
    client.socket.pause();
    transport.writeText(large);
    assert.ok(transport.backlog > 0);
    transport.end();
    client.socket.resume();
    await client.until(() => client.received.length === large.length, "everything");
    assert.equal(await client.closed(), "end");
  });

  test("that were gathered but never made give their buffers back with the connection", async () => {
    await using pair = await acceptOne();
    const piece = Buffer.alloc(READ_SIZE);
    // More than a thread has buffers.
    for (let i = 0; i < 300; i++) pair.transport.gather(piece, 0, piece.length);
    assert.equal(pooledCopy(piece), undefined);
    pair.transport.destroy();
    await pair.client.closed();
    await until(() => pooledCopy(piece) !== undefined, "a buffer");
  });

  test("that fail end the connection with the system's error", async (t) => {
    const errors: unknown[] = [];
    for (const way of [sockets.directWrites, DOCUMENTED.directWrites]) {
      t.mock.method(sockets, "directWrites", way);
      errors.push(await failedWrite());
    }
    const [direct, documented] = errors;
    assert.deepEqual(direct, documented);
    assert.deepEqual(direct, { code: "ECONNRESET", errno: -104, syscall: "write", message: "write ECONNRESET" });
  });
});

/** The error of a write on a connection that the peer has reset, unnoticed because nothing is read. */
async function failedWrite(): Promise<object> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const connected = Promise.withResolvers<Transport>();
  const closed = Promise.withResolvers<Error | undefined>();
  connect(admitted({ host: "127.0.0.1", port }), 0, {
    onConnect(transport) {
      transport.pause();
      connected.resolve(transport);
      return {
        onData: () => {},
        onEnd: () => {},
        onDrain: () => {},
        onClose: (error) => closed.resolve(error),
        onFault: (error) => assert.fail(String(error)),
      };
    },
    onClose: (error) => assert.fail(String(error)),
  });
  const [transport, [socket]] = await Promise.all([connected.promise, accepted]);
  socket.resetAndDestroy();
  await once(socket, "close");
  for (let turn = 0; turn < 1000 && !transport.wasReset; turn++) await new Promise(setImmediate);
  // The reset has arrived by the second write at the latest.
  transport.writeText("one");
  transport.writeText("two");
  const { code, errno, syscall, message } = (await closed.promise) as NodeJS.ErrnoException;
  server.close();
  return { code, errno, syscall, message };
}

/** What arrives from a peer that responds without reading and closes while much is being written to it. */
async function earlyAnswer(): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end("answer");
    socket.destroySoon();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  let received = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  const chunk = Buffer.alloc(64 * 1024);
  connect(admitted({ host: "127.0.0.1", port }), 0, {
    onConnect(transport) {
      transport.outliveFailedWrites();
      transport.pause();
      // Writes until one fails, and only then reads what the peer has sent.
      const write = (turns: number): void => {
        if (turns === 0) {
          transport.resume();
          return;
        }
        transport.write(chunk, 0, chunk.length);
        setImmediate(write, turns - 1);
      };
      write(200);
      return {
        onData: (buffer, length) => {
          received += buffer.toString("latin1", 0, length);
        },
        onEnd: () => {},
        onDrain: () => {},
        onClose: () => resolve(),
        onFault: (error) => assert.fail(String(error)),
      };
    },
    onClose: (error) => assert.fail(String(error)),
  });
  await promise;
  server.close();
  return received;
}

test("a response is delivered although later writes fail", async (t) => {
  assert.equal(await earlyAnswer(), "answer");
  // Without internals the connection still ends, with or without the response.
  t.mock.method(sockets, "guardWrites", DOCUMENTED.guardWrites);
  await earlyAnswer();
});

test("no other file uses undocumented parts", () => {
  const internals = [
    /\.(latin1|utf8|ascii|ucs2|hex|base64)(Slice|Write)\b/,
    // `override _read()` and its kind are documented for implementations of streams.
    // Not internals: zod's own, and the second labels of SRV names.
    /\.(_(?!(zod|tcp|udp|proto)\b)[a-z]\w*)/,
    /(socket|handle|stream|server|transport)\w*\["_/i,
    /\b(process\.binding|internalBinding|getpeername|useUserBuffer)\b/,
    /\bonread:/,
  ];
  const own = ["", "-tls", "-zlib"].map((part) => `src/net/node-internals${part}.ts`);
  const users = globSync("src/**/*.ts", { cwd: appRoot })
    .filter((path) => !path.endsWith(".test.ts") && !own.includes(path) && !path.includes("/gen/"))
    .filter((path) => internals.some((each) => each.test(withoutComments(readFileSync(`${appRoot}${path}`, "utf8")))));
  assert.deepEqual(users, ["src/net/connect.ts"]);
  // It only passes on `onread`.
  const opener = withoutComments(readFileSync(`${appRoot}src/net/connect.ts`, "utf8"));
  assert.match(opener, /onread: onreadOptions\(reader\)/);
});

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
}

test("the handshakes of a server have Node's deadline until it is removed", () => {
  const server = createTlsServer();
  // Node's options, which the handshakes of the server get: 120 s by default.
  const deadline = (): unknown =>
    Object.getOwnPropertySymbols(server)
      .filter((symbol) => symbol.description === "handshake-timeout")
      .map((symbol) => (server as object as Record<symbol, unknown>)[symbol]);
  assert.deepEqual(deadline(), [120_000]);
  tlsServers.noDeadline(server);
  assert.deepEqual(deadline(), [0]);
});
