/** Clients of each kind. Every one repeats its requests until it is stopped, checks every answer, and never repeats a failed one. */
import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { type ClientHttp2Session, constants, connect as http2Connect } from "node:http2";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { WebSocket } from "ws";
import { BIG } from "./backends.ts";
import type { Attempt, Tally } from "./tally.ts";

/** Limit of every single wait. */
const PATIENCE_MS = 20_000;
/** Largest body that is echoed. */
const MAX_BODY = 64 * 1024;

/** The gateway's ports. */
export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly tcp: number;
}

export interface Soak {
  /** The current ports; they change when the process is replaced. */
  ports(): Ports;
  readonly tally: Tally;
  /** True when no further request may begin. */
  over(): boolean;
}

/** Makes one attempt after the other, counted as `kind` in the summary. */
async function repeat(
  kind: string,
  { tally, over }: Soak,
  maxPause: number,
  make: (attempt: Attempt) => Promise<void>,
): Promise<void> {
  while (!over()) {
    const current = tally.begin(kind);
    try {
      await make(current);
      tally.done(current);
    } catch (error) {
      tally.failed(current, error);
    }
    await delay(randomInt(maxPause + 1));
  }
}

/** Echoes bodies over one connection that is kept, or over a new one for each request. */
export function http1(soak: Soak, tls: boolean, keepAlive: boolean): Promise<void> {
  const agent = tls
    ? new TlsAgent({ keepAlive, maxSockets: 1, rejectUnauthorized: false, servername: "soak.test" })
    : new Agent({ keepAlive, maxSockets: 1 });
  const kind = `${tls ? "https" : "http"}/1.1, ${keepAlive ? "keep-alive" : "new connections"}`;
  return repeat(kind, soak, 30, async (attempt) => {
    const body = randomBytes(randomInt(1, MAX_BODY));
    const send = tls ? httpsRequest : httpRequest;
    const port = tls ? soak.ports().https : soak.ports().http;
    const headers = { "x-request-id": attempt.id };
    const call = send({ host: "127.0.0.1", port, agent, method: "POST", path: "/echo", headers, timeout: PATIENCE_MS });
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.end(body);
    attempt.step = call.reusedSocket ? "head of the response, on a connection that was kept" : "head of the response";
    const [response] = await once(call, "response");
    attempt.step = "body of the response";
    const received = Buffer.concat(await response.toArray());
    assert.equal(response.statusCode, 200, received.toString("latin1", 0, 200));
    assert.ok(received.equals(body), `${received.length} of ${body.length} bytes came back`);
  });
}

/** Sends requests over one HTTP/2 connection at a time, several concurrently, and replaces it every few seconds. */
export async function http2(soak: Soak, tls: boolean): Promise<void> {
  const kind = tls ? "HTTP/2 over TLS" : "HTTP/2 without TLS";
  while (!soak.over()) {
    const { https, http } = soak.ports();
    const session = tls
      ? http2Connect(`https://127.0.0.1:${https}`, { rejectUnauthorized: false, servername: "soak.test" })
      : http2Connect(`http://127.0.0.1:${http}`);
    session.on("error", () => {});
    const attempt = soak.tally.begin(`${kind}, connections`);
    try {
      await once(session, "connect", { signal: AbortSignal.timeout(PATIENCE_MS) });
      soak.tally.done(attempt);
    } catch (error) {
      soak.tally.failed(attempt, error);
      session.destroy();
      continue;
    }
    // No stream is opened after GOAWAY.
    let gone = false;
    session.once("goaway", () => {
      gone = true;
    });
    const until = performance.now() + randomInt(1000, 5000);
    const over = (): boolean => gone || session.closed || session.destroyed || soak.over() || performance.now() > until;
    const lane: Soak = { ...soak, over };
    await Promise.all(Array.from({ length: 4 }, () => repeat(kind, lane, 30, (each) => http2Echo(session, each))));
    session.close();
  }
}

async function http2Echo(session: ClientHttp2Session, attempt: Attempt): Promise<void> {
  const body = randomBytes(randomInt(1, MAX_BODY));
  const pieces: Buffer[] = [];
  let status: number | undefined;
  // With events instead of promises: one read may deliver everything up to the end of the stream before a promise continues.
  const refused = await new Promise<boolean>((resolve, reject) => {
    const stream = session.request({ ":method": "POST", ":path": "/echo", "x-request-id": attempt.id });
    attempt.step = "head of the response";
    stream.setTimeout(PATIENCE_MS, () => stream.destroy(new Error("no answer")));
    stream.on("response", (headers) => {
      status = headers[":status"];
      attempt.step = `body of the response with ${status} on stream ${stream.id}`;
    });
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    // A draining server may refuse a stream that crosses its GOAWAY: it has not processed it, and clients repeat it (RFC 9113 8.7).
    stream.on("error", (error) =>
      stream.rstCode === constants.NGHTTP2_REFUSED_STREAM ? resolve(true) : reject(error),
    );
    stream.on("close", () =>
      stream.rstCode === 0 ? resolve(false) : reject(new Error(`reset with ${stream.rstCode}`)),
    );
    stream.end(body);
  });
  if (refused) return;
  const received = Buffer.concat(pieces);
  assert.equal(status, 200, received.toString("latin1", 0, 200));
  assert.ok(received.equals(body), `${received.length} of ${body.length} bytes came back`);
}

/** Unary and bidirectional calls over a channel of grpc-js, which reconnects by itself. */
export async function grpc(soak: Soak): Promise<void> {
  while (!soak.over()) {
    const { http } = soak.ports();
    const client = new Client(`127.0.0.1:${http}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    const lane: Soak = { ...soak, over: () => soak.over() || soak.ports().http !== http };
    await Promise.all([
      repeat("gRPC, unary", lane, 30, (attempt) => unaryCall(client, attempt)),
      repeat("gRPC, bidirectional stream", lane, 100, (attempt) => streamingCall(client, attempt)),
    ]);
    client.close();
  }
}

const asIs = (bytes: Buffer): Buffer => bytes;
const deadline = (): Date => new Date(Date.now() + PATIENCE_MS);

function metadataOf({ id }: Attempt): Metadata {
  const metadata = new Metadata();
  metadata.set("x-request-id", id);
  return metadata;
}

function unaryCall(client: Client, attempt: Attempt): Promise<void> {
  const message = randomBytes(randomInt(1, 4096));
  const metadata = metadataOf(attempt);
  const options = { deadline: deadline() };
  attempt.step = "call";
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest("/soak.Echo/Unary", asIs, asIs, message, metadata, options, (error, answer) => {
      if (error !== null) reject(error);
      else if (answer?.equals(message)) resolve();
      else reject(new Error("another message came back"));
    });
  });
}

async function streamingCall(client: Client, attempt: Attempt): Promise<void> {
  const options = { deadline: deadline() };
  const call = client.makeBidiStreamRequest("/soak.Echo/Stream", asIs, asIs, metadataOf(attempt), options);
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const ended = once(call, "status", { signal });
  ended.catch(() => {});
  for (let round = 0; round < 10; round++) {
    const message = randomBytes(randomInt(1, 4096));
    call.write(message);
    attempt.step = `message ${round}`;
    const [answer] = (await once(call, "data", { signal })) as [Buffer];
    assert.ok(answer.equals(message));
    await delay(randomInt(50));
  }
  call.end();
  attempt.step = "end of the stream";
  const [status] = await ended;
  assert.equal(status.code, 0, status.details);
}

/** Reads a large body in small steps, so that the gateway has to hold back the backend. */
export function slowReader(soak: Soak): Promise<void> {
  return repeat("http/1.1, slow reader", soak, 100, async (attempt) => {
    const call = httpRequest({
      host: "127.0.0.1",
      port: soak.ports().http,
      path: "/big",
      headers: { "x-request-id": attempt.id },
      agent: false,
      timeout: PATIENCE_MS,
    });
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.end();
    const [response] = await once(call, "response");
    let length = 0;
    attempt.step = "body of the response";
    for await (const piece of response) {
      length += piece.length;
      await delay(20);
    }
    assert.equal(length, BIG.length);
  });
}

/** Sends the request's head in pieces. */
export function slowSender(soak: Soak): Promise<void> {
  return repeat("http/1.1, slow sender", soak, 100, async (attempt) => {
    const socket = connect({ host: "127.0.0.1", port: soak.ports().http });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("no answer")));
    const answer = socket.toArray();
    // Read below; writes may fail before that.
    answer.catch(() => {});
    socket.on("error", () => {});
    for (const piece of [
      "POST /echo HT",
      "TP/1.1\r\nHost: soak.test\r\nConnection: cl",
      `ose\r\nX-Request-Id: ${attempt.id}\r\nContent-Length: 5\r\n\r\nhe`,
      "llo",
    ]) {
      socket.write(piece);
      await delay(50);
    }
    attempt.step = "response";
    const text = Buffer.concat(await answer).toString("latin1");
    // The pieces may arrive in one chunk or two.
    assert.match(text, /^HTTP\/1\.1 200 .*he(\r\n3\r\n)?llo\r\n0\r\n\r\n$/s);
  });
}

/** A WebSocket that exchanges messages for a second or two. */
export function webSocket(soak: Soak, tls: boolean): Promise<void> {
  return repeat(tls ? "WebSocket over TLS" : "WebSocket", soak, 200, async (attempt) => {
    const url = tls ? `wss://127.0.0.1:${soak.ports().https}/ws` : `ws://127.0.0.1:${soak.ports().http}/ws`;
    const socket = new WebSocket(url, {
      rejectUnauthorized: false,
      handshakeTimeout: PATIENCE_MS,
      headers: { "x-request-id": attempt.id },
    });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    try {
      await once(socket, "open", { signal });
      for (let round = 0; round < 20; round++) {
        const message = randomBytes(randomInt(1, 4096));
        socket.send(message);
        attempt.step = `message ${round}`;
        const [answer] = (await once(socket, "message", { signal })) as [Buffer];
        assert.ok(answer.equals(message));
        await delay(randomInt(100));
      }
      attempt.step = "close";
      const closed = once(socket, "close", { signal });
      socket.close(1000);
      assert.equal((await closed)[0], 1000);
    } finally {
      socket.on("error", () => {});
      socket.terminate();
    }
  });
}

/** Sends bytes through the TCP listener and checks that the end of each direction arrives. */
export function tcp(soak: Soak): Promise<void> {
  return repeat("TCP", soak, 100, async (attempt) => {
    const socket = connect({ host: "127.0.0.1", port: soak.ports().tcp, allowHalfOpen: true });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("no answer")));
    const answer = socket.toArray();
    // Read below; writes may fail before that.
    answer.catch(() => {});
    socket.on("error", () => {});
    const sent: Buffer[] = [];
    for (let round = 0; round < 10; round++) {
      attempt.step = `piece ${round}, from port ${socket.localPort}`;
      const piece = randomBytes(randomInt(1, MAX_BODY));
      sent.push(piece);
      socket.write(piece);
      await delay(randomInt(50));
    }
    socket.end();
    attempt.step = `end, from port ${socket.localPort}`;
    assert.ok(Buffer.concat(await answer).equals(Buffer.concat(sent)));
  });
}
