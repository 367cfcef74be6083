import { readFileSync } from "node:fs";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { messageOf } from "../../base/errors.ts";
import { nodeHttp2 } from "../../base/lazy-node.ts";
import type { HeaderList } from "../../http/message.ts";
import { frame, MessageReader } from "../../upstream/grpc/messages.ts";
import { statusIn, statusOfHttp } from "../../upstream/grpc/status.ts";
import { DELTA_METHOD } from "../resources.ts";

/** Milliseconds. A controller whose node has vanished is noticed after their sum. */
const PING_EVERY = 20_000;
const PING_TIMEOUT = 10_000;
/** Milliseconds from connecting to the first sign of the server. */
const CONNECT_TIMEOUT = 10_000;
/** Bytes that the server may send before they are taken. */
const WINDOW = 1024 * 1024;

export interface ConnectionOptions {
  /** `http(s)://host:port` */
  readonly address: string;
  /** Path of the CA's certificate in PEM, read for each connection; absent: the CAs that Node.js trusts. */
  readonly rootCa?: string | undefined;
  /** Path of the token, read for each connection because it is replaced before it expires. */
  readonly token?: string | undefined;
}

export interface ConnectionEvents {
  onMessage(message: Uint8Array): void;
  /** The last event: why the stream has ended. */
  onEnd(reason: string): void;
}

/**
 * One gRPC stream on its own connection. The pools of upstream/ are made for many short calls; this is a single one that
 * lasts for days, and has to notice a peer that vanishes.
 */
export class Connection {
  readonly #events: ConnectionEvents;
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  readonly #timer: NodeJS.Timeout;
  #deadline: NodeJS.Timeout;
  #ended = false;

  /** Connects. Throws an Error if a file cannot be read. */
  constructor({ address, rootCa, token }: ConnectionOptions, events: ConnectionEvents) {
    this.#events = events;
    const ca = rootCa === undefined ? undefined : readFileSync(rootCa);
    const authorization = token === undefined ? undefined : `Bearer ${readFileSync(token, "utf8").trim()}`;
    this.#session = nodeHttp2().connect(address, {
      ...(ca !== undefined && { ca }),
      settings: { enablePush: false, initialWindowSize: WINDOW },
    });
    this.#session.on("error", (error) => this.#end(messageOf(error)));
    this.#session.on("goaway", () => this.#end("the controller is shutting down"));
    this.#session.on("close", () => this.#end("the connection was closed"));
    this.#session.once("connect", () => {
      clearTimeout(this.#deadline);
      this.#session.setLocalWindowSize(WINDOW);
    });
    const late = (): void => this.#end(`no connection within ${CONNECT_TIMEOUT / 1000} s`);
    this.#deadline = setTimeout(late, CONNECT_TIMEOUT);
    this.#timer = setInterval(() => this.#ping(), PING_EVERY);
    this.#stream = this.#session.request({
      ":method": "POST",
      ":path": DELTA_METHOD,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": "tracegate",
      ...(authorization !== undefined && { authorization }),
    });
    this.#listen();
  }

  send(message: Uint8Array): void {
    if (!this.#ended) this.#stream.write(frame(message));
  }

  /** Ends the stream without an event. */
  close(): void {
    if (this.#ended) return;
    this.#stop();
  }

  #listen(): void {
    const stream = this.#stream;
    const reader = new MessageReader((message) => {
      if (!this.#ended) this.#events.onMessage(message);
    });
    let trailers: HeaderList = [];
    stream.on("response", (headers) => {
      const status = headers[":status"] ?? 0;
      const contentType = headers["content-type"];
      trailers = listOf(headers);
      if (status !== 200 || contentType?.startsWith("application/grpc") !== true)
        this.#end(statusOfHttp(status, contentType).message);
    });
    stream.on("trailers", (headers) => {
      trailers = listOf(headers);
    });
    stream.on("data", (bytes: Buffer) => {
      const problem = reader.push(bytes, 0, bytes.length);
      if (problem !== undefined) this.#end(problem.message);
    });
    stream.on("error", (error) => this.#end(messageOf(error)));
    const over = (): void => {
      const status = statusIn(trailers);
      const known = status === undefined || (status.code === 0 && status.message === "");
      this.#end(known ? "the controller has ended the stream" : `gRPC status ${status.code}: ${status.message}`);
    };
    stream.on("end", over);
    stream.on("close", over);
  }

  #ping(): void {
    const late = setTimeout(() => this.#end("the controller does not reply any more"), PING_TIMEOUT);
    const sent = !this.#session.destroyed && this.#session.ping(() => clearTimeout(late));
    if (!sent) clearTimeout(late);
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.#stop();
    this.#events.onEnd(reason);
  }

  #stop(): void {
    this.#ended = true;
    clearInterval(this.#timer);
    clearTimeout(this.#deadline);
    this.#session.destroy();
  }
}

function listOf(headers: IncomingHttpHeaders): HeaderList {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
}
