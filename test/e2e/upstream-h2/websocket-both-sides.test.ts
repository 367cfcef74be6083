import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ClientHttp2Stream, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { WebSocket } from "ws";
import type { TestPlane } from "../../helpers/data-plane.ts";
import { until } from "../../helpers/until.ts";
import { NodeClient } from "../http2/support.ts";
import { gatewayTo, H2Server } from "./support.ts";

const PATIENCE_MS = 60_000;
const ABNORMAL = 1006;
const NO_ERROR = 0;
const CANCEL = 8;
const OPEN = { ":method": "CONNECT", ":protocol": "websocket", "sec-websocket-version": "13" };

/** A part of `ws` that its types leave out: a WebSocket over a stream that is open already, as after an extended CONNECT. */
const Attached = WebSocket as unknown as new (address: null, protocols: undefined, options: object) => Attachable;

interface Attachable extends WebSocket {
  _isServer: boolean;
  setSocket(stream: Duplex, head: Buffer, options: { readonly maxPayload: number }): void;
}

function over(stream: Duplex, side: "client" | "server"): WebSocket {
  const socket = new Attached(null, undefined, { autoPong: true });
  socket._isServer = side === "server";
  stream.on("error", () => {});
  socket.on("error", () => {});
  socket.setSocket(stream, Buffer.alloc(0), { maxPayload: 0 });
  return socket;
}

/** Both ends of one tunnel. */
interface Streams {
  readonly clientStream: ClientHttp2Stream;
  readonly serverStream: ServerHttp2Stream;
}

/** Both ends of one WebSocket: `ws` over a stream of node:http2 on either side of the gateway. */
interface Ends extends Streams {
  readonly client: WebSocket;
  readonly server: WebSocket;
}

interface Setup extends AsyncDisposable {
  readonly plane: TestPlane;
  readonly client: NodeClient;
  readonly backend: H2Server;
  tunnel(): Promise<Streams>;
  open(): Promise<Ends>;
}

async function setUp(): Promise<Setup> {
  const opened = new Map<string | undefined, ServerHttp2Stream>();
  let rooms = 0;
  const backend = await H2Server.start(
    (stream, headers) => {
      if (headers[":protocol"] !== "websocket") {
        stream.respond({ ":status": 200 });
        stream.end("plain");
        return;
      }
      stream.respond({ ":status": 200 });
      opened.set(headers[":path"], stream);
    },
    { settings: { enableConnectProtocol: true } },
  );
  const plane = await gatewayTo(backend.port);
  const client = await NodeClient.connect(plane.port);
  if (client.session.remoteSettings.enableConnectProtocol !== true) await once(client.session, "remoteSettings");
  const tunnel = async (): Promise<Streams> => {
    const room = `/chat/${++rooms}`;
    const clientStream = client.open({ ...OPEN, ":path": room });
    const [fields] = await once(clientStream, "response", { signal: AbortSignal.timeout(PATIENCE_MS) });
    const serverStream = opened.get(room);
    assert.equal(fields[":status"], 200);
    assert.ok(serverStream);
    return { clientStream, serverStream };
  };
  return {
    plane,
    client,
    backend,
    tunnel,
    async open() {
      const streams = await tunnel();
      return { ...streams, client: over(streams.clientStream, "client"), server: over(streams.serverStream, "server") };
    },
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await plane[Symbol.asyncDispose]();
      backend[Symbol.dispose]();
    },
  };
}

/** The next event of its kind, within a bounded time. */
async function next(socket: WebSocket, event: "message" | "ping" | "pong" | "close"): Promise<unknown[]> {
  return (await once(socket, event, { signal: AbortSignal.timeout(PATIENCE_MS) })) as unknown[];
}

async function exchange(from: WebSocket, to: WebSocket, data: string | Buffer): Promise<void> {
  const arrived = next(to, "message");
  from.send(data);
  const [message, binary] = await arrived;
  assert.equal(binary, typeof data !== "string");
  assert.ok(Buffer.from(data as string).equals(message as Buffer), `${data.length} bytes`);
}

test("messages and pings pass both ways, many WebSockets share a connection on each side", async () => {
  await using setup = await setUp();
  const all = await Promise.all([setup.open(), setup.open(), setup.open()]);
  // Larger than all windows; text in frames with a length of 7, 16 and 64 bits.
  const large = randomBytes(1_000_000);
  await Promise.all(
    all.map(async ({ client, server }) => {
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        for (const data of ["short", "é".repeat(1000), large, Buffer.alloc(0)]) await exchange(from, to, data);
        const pinged = next(to, "ping");
        const ponged = next(from, "pong");
        from.ping("are you there?");
        assert.equal(String((await pinged)[0]), "are you there?");
        assert.equal(String((await ponged)[0]), "are you there?");
      }
    }),
  );
  assert.equal((await setup.client.fetch()).body, "plain");
  assert.equal(setup.backend.sessions.length, 1);
});

/** Close frames (RFC 6455 5.5.1) with code 4001: of a client with a mask of zeros, and of a server. */
const CLIENT_CLOSE = Buffer.from([0x88, 0x88, 0, 0, 0, 0, 0x0f, 0xa1, ...Buffer.from("enough")]);
const SERVER_CLOSE = Buffer.from([0x88, 0x08, 0x0f, 0xa1, ...Buffer.from("enough")]);

async function take(stream: Duplex, length: number): Promise<Buffer> {
  for (;;) {
    const bytes = stream.read(length) as Buffer | null;
    if (bytes !== null) return bytes;
    await once(stream, "readable", { signal: AbortSignal.timeout(PATIENCE_MS) });
  }
}

test("a closing handshake that either side begins ends both streams, and nothing else", async () => {
  await using setup = await setUp();
  const other = await setup.open();
  const one = await setup.tunnel();
  const atServer = next(over(one.serverStream, "server"), "close");
  one.clientStream.write(CLIENT_CLOSE);
  assert.deepEqual(await take(one.clientStream, SERVER_CLOSE.length), SERVER_CLOSE);
  one.clientStream.resume().end();
  assert.deepEqual((await atServer).map(String), ["4001", "enough"]);
  const two = await setup.tunnel();
  const atClient = next(over(two.clientStream, "client"), "close");
  two.serverStream.write(SERVER_CLOSE);
  const reply = await take(two.serverStream, CLIENT_CLOSE.length);
  assert.deepEqual([...reply.subarray(0, 2)], [0x88, 0x88]);
  two.serverStream.resume().end();
  assert.deepEqual((await atClient).map(String), ["4001", "enough"]);
  await until(() => setup.plane.endpoints.stats()[0]?.pending === 1, "the end of two calls");
  for (const { clientStream, serverStream } of [one, two])
    assert.deepEqual([clientStream.rstCode, serverStream.rstCode], [0, 0]);
  await exchange(other.client, other.server, "still here");
  assert.deepEqual([setup.backend.sessions.length, setup.plane.endpoints.stats()[0]?.consecutiveFailures], [1, 0]);
});

test("a stream that either side resets breaks its WebSocket on the other side, and no other", async () => {
  await using setup = await setUp();
  const other = await setup.open();
  const one = await setup.open();
  const serverLost = next(one.server, "close");
  one.clientStream.close(CANCEL);
  assert.equal((await serverLost)[0], ABNORMAL);
  assert.equal(one.serverStream.rstCode, CANCEL);
  const two = await setup.open();
  const clientLost = next(two.client, "close");
  two.serverStream.destroy(new Error("the server is broken"));
  assert.equal((await clientLost)[0], ABNORMAL);
  assert.equal(two.clientStream.rstCode, CANCEL);
  // An end without a closing handshake.
  const three = await setup.open();
  const ended = next(three.client, "close");
  three.serverStream.end();
  assert.equal((await ended)[0], ABNORMAL);
  await exchange(other.server, other.client, "still here");
  assert.equal(setup.backend.sessions.length, 1);
});

test("a server that ends a tunnel and accepts no more bytes has closed it without an error", async () => {
  await using setup = await setUp();
  const { clientStream, serverStream } = await setup.tunnel();
  // More than the client's windows hold while it does not read.
  const large = randomBytes(200_000);
  serverStream.end(large);
  serverStream.close(NO_ERROR);
  await once(serverStream, "close");
  const pieces: Buffer[] = [];
  clientStream.on("data", (bytes: Buffer) => pieces.push(bytes));
  await once(clientStream, "end", { signal: AbortSignal.timeout(PATIENCE_MS) });
  assert.ok(Buffer.concat(pieces).equals(large));
  // The client, which could continue to send, is notified.
  await until(() => clientStream.closed, "the end of the stream");
  assert.equal(clientStream.rstCode, NO_ERROR);
  await until(() => setup.plane.endpoints.stats()[0]?.pending === 0, "the end of the call");
  const { error } = await setup.plane.logged("/chat/1");
  assert.deepEqual([error, setup.plane.endpoints.stats()[0]?.consecutiveFailures], [undefined, 0]);
});

test("a lost connection breaks its WebSockets on the other side; new ones can open", async () => {
  await using setup = await setUp();
  const both = [await setup.open(), await setup.open()];
  const lost = both.map(({ client }) => next(client, "close"));
  setup.backend.sessions[0]?.destroy();
  for (const [code] of await Promise.all(lost)) assert.equal(code, ABNORMAL);
  const again = await setup.open();
  await exchange(again.client, again.server, "once more");
  const gone = next(again.server, "close");
  setup.client.session.destroy();
  assert.equal((await gone)[0], ABNORMAL);
  await until(() => setup.plane.endpoints.stats()[0]?.pending === 0, "the end of all calls");
});
