/** Clients of each kind. Every one repeats its requests until it is stopped, checks every answer, and never repeats a failed one. */
import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { BIG } from "./backends.ts";
import type { Tally } from "./tally.ts";

/** Milliseconds that anything may take. */
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
  readonly ports: Ports;
  readonly tally: Tally;
  /** Aborted when no request is to begin any more. */
  readonly over: AbortSignal;
}

/** Makes one attempt after the other; the first argument names it in the summary. */
async function repeat(
  kind: string,
  { tally, over }: Soak,
  maxPause: number,
  attempt: () => Promise<void>,
): Promise<void> {
  while (!over.aborted) {
    const current = tally.begin(kind);
    try {
      await attempt();
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
  return repeat(kind, soak, 30, async () => {
    const body = randomBytes(randomInt(1, MAX_BODY));
    const send = tls ? httpsRequest : httpRequest;
    const port = tls ? soak.ports.https : soak.ports.http;
    const call = send({ host: "127.0.0.1", port, agent, method: "POST", path: "/echo", timeout: PATIENCE_MS });
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.end(body);
    const [response] = await once(call, "response");
    const received = Buffer.concat(await response.toArray());
    assert.equal(response.statusCode, 200, received.toString("latin1", 0, 200));
    assert.ok(received.equals(body), `${received.length} of ${body.length} bytes came back`);
  });
}

/** Reads a large body in small steps, so that the gateway has to wait. */
export function slowReader(soak: Soak): Promise<void> {
  return repeat("http/1.1, slow reader", soak, 100, async () => {
    const call = httpRequest({
      host: "127.0.0.1",
      port: soak.ports.http,
      path: "/big",
      agent: false,
      timeout: PATIENCE_MS,
    });
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.end();
    const [response] = await once(call, "response");
    let length = 0;
    for await (const piece of response) {
      length += piece.length;
      await delay(20);
    }
    assert.equal(length, BIG.length);
  });
}

/** Sends its head in pieces. */
export function slowSender(soak: Soak): Promise<void> {
  return repeat("http/1.1, slow sender", soak, 100, async () => {
    const socket = connect({ host: "127.0.0.1", port: soak.ports.http });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("no answer")));
    const answer = socket.toArray();
    answer.catch(() => {});
    for (const piece of [
      "POST /echo HT",
      "TP/1.1\r\nHost: soak.test\r\nConnection: cl",
      "ose\r\nContent-Length: 5\r\n\r\nhe",
      "llo",
    ]) {
      socket.write(piece);
      await delay(50);
    }
    const text = Buffer.concat(await answer).toString("latin1");
    assert.match(text, /^HTTP\/1\.1 200 .*hello/s);
  });
}

/** A conversation of a second or two. */
export function webSocket(soak: Soak, tls: boolean): Promise<void> {
  return repeat(tls ? "WebSocket over TLS" : "WebSocket", soak, 200, async () => {
    const url = tls ? `wss://127.0.0.1:${soak.ports.https}/ws` : `ws://127.0.0.1:${soak.ports.http}/ws`;
    const socket = new WebSocket(url, { rejectUnauthorized: false, handshakeTimeout: PATIENCE_MS });
    const signal = AbortSignal.timeout(PATIENCE_MS);
    try {
      await once(socket, "open", { signal });
      for (let round = 0; round < 20; round++) {
        const message = randomBytes(randomInt(1, 4096));
        socket.send(message);
        const [answer] = (await once(socket, "message", { signal })) as [Buffer];
        assert.ok(answer.equals(message));
        await delay(randomInt(100));
      }
      const closed = once(socket, "close", { signal });
      socket.close(1000);
      assert.equal((await closed)[0], 1000);
    } finally {
      socket.on("error", () => {});
      socket.terminate();
    }
  });
}

/** Bytes through the TCP listener, and the end of each direction. */
export function tcp(soak: Soak): Promise<void> {
  return repeat("TCP", soak, 100, async () => {
    const socket = connect({ host: "127.0.0.1", port: soak.ports.tcp, allowHalfOpen: true });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error("no answer")));
    const answer = socket.toArray();
    answer.catch(() => {});
    const sent: Buffer[] = [];
    for (let round = 0; round < 10; round++) {
      const piece = randomBytes(randomInt(1, MAX_BODY));
      sent.push(piece);
      socket.write(piece);
      await delay(randomInt(50));
    }
    socket.end();
    assert.ok(Buffer.concat(await answer).equals(Buffer.concat(sent)));
  });
}
