import { readFileSync } from "node:fs";
import { type ErrorCode, messageOf } from "../../base/errors.ts";
import { fileProblem } from "../../base/file-problem.ts";
import type { ResponseHead } from "../../http/h1/parse-head.ts";
import { requestStart } from "../../http/h2/fields.ts";
import { getHeader, type HeaderList } from "../../http/message/message.ts";
import { UNKNOWN_LENGTH } from "../../http/stream.ts";
import type { Egress } from "../../net/egress.ts";
import type { ConnectWaiter } from "../../upstream/connections/connect-attempt.ts";
import { Dialer } from "../../upstream/connections/dialer.ts";
import type { UpstreamEvents } from "../../upstream/connections/upstream.ts";
import { frame, MessageReader } from "../../upstream/grpc/messages.ts";
import { statusIn, statusOfHttp } from "../../upstream/grpc/status.ts";
import { type SessionOwner, UpstreamSession } from "../../upstream/h2/session.ts";
import type { UpstreamStream } from "../../upstream/h2/stream.ts";
import { AddressSearch } from "../../upstream/pools/address-search.ts";
import { Resolver } from "../../upstream/resolve/resolver.ts";
import { type PoolTarget, targetName } from "../../upstream/settings/pool-target.ts";
import { DELTA_METHOD } from "../resources.ts";

/** Milliseconds of silence before a PING. A controller whose node has vanished is noticed after this and the PING's deadline. */
const PING_EVERY = 20_000;
/** Milliseconds to connect, over all addresses of the controller, and the same again until its first bytes arrive. */
const CONNECT_TIMEOUT = 10_000;
const LATE = `no connection within ${CONNECT_TIMEOUT / 1000} s`;

export interface ConnectionOptions {
  /** `http(s)://host:port` */
  readonly address: string;
  /** Path of the CA's certificate in PEM, read for each connection; absent: those of the system and of Node.js. */
  readonly rootCa?: string | undefined;
  /** Path of the token, read for each connection because it is replaced before it expires. */
  readonly token?: string | undefined;
  /** Decides which addresses may be connected to. */
  readonly egress: Egress;
}

interface ConnectionEvents {
  onMessage(message: Uint8Array): void;
  /** The last event: why the stream has ended. */
  onEnd(reason: string): void;
}

/**
 * One gRPC stream on its own connection. The pools of upstream/ are made for many short calls; this single call lasts for days,
 * must leave a controller that drains, and must notice one that vanishes.
 */
export class Connection implements ConnectWaiter<UpstreamSession>, SessionOwner, UpstreamEvents {
  readonly #events: ConnectionEvents;
  readonly #target: PoolTarget;
  readonly #headers: HeaderList;
  readonly #cancelConnect: () => void;
  readonly #reader: MessageReader;
  readonly #timer: NodeJS.Timeout;
  #session: UpstreamSession | undefined;
  #stream: UpstreamStream | undefined;
  /** Messages from before there was a stream. */
  #waiting: Uint8Array[] = [];
  /** `performance.now()` ms. */
  #pingedAt = performance.now();
  /** Has the status where a response consists of its head alone ("Trailers-Only"). */
  #responseHead: HeaderList = [];
  #ended = false;

  /** Connects. Throws an Error if a file cannot be read. */
  constructor({ address, rootCa, token, egress }: ConnectionOptions, events: ConnectionEvents) {
    this.#events = events;
    this.#target = targetOf(new URL(address), rootCa === undefined ? undefined : textOf(rootCa));
    const authorization = token === undefined ? [] : ["authorization", `Bearer ${textOf(token).trim()}`];
    this.#headers = ["content-type", "application/grpc", "user-agent", "tracegate", ...authorization];
    this.#reader = new MessageReader((message) => {
      if (!this.#ended) this.#events.onMessage(message);
    });
    this.#timer = setInterval(() => this.#tick(performance.now()), 1000);
    this.#cancelConnect = this.#connect(egress);
  }

  send(message: Uint8Array): void {
    const bytes = frame(message);
    if (this.#stream === undefined) this.#waiting.push(bytes);
    else this.#stream.sendBody(bytes, 0, bytes.length);
  }

  /** Ends the stream without an event. */
  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#timer);
    this.#cancelConnect();
    this.#session?.abort("the stream is no longer needed");
  }

  #connect(egress: Egress): () => void {
    const target = this.#target;
    const dialer = new Dialer(target, 0);
    const search = new AddressSearch(dialer.addresses, new Resolver("All", egress), CONNECT_TIMEOUT);
    return search.start<UpstreamSession>(
      this,
      () => {},
      ({ address, host }, attempt, failed) =>
        dialer.dial(address, host, "http2", attempt.clock, {
          onConnect: (transport) => {
            const session = new UpstreamSession(transport, this, attempt.clock.times);
            attempt.succeed(session);
            return session.handler;
          },
          onClose: failed,
        }),
    );
  }

  onConnection(session: UpstreamSession): void {
    this.#session = session;
    const { tls } = this.#target;
    const head = { method: "POST", authority: targetName(this.#target), path: DELTA_METHOD, search: "" };
    const start = requestStart(head, tls === undefined ? "http" : "https", true, "");
    this.#stream = session.send(start, this.#headers, head.method, UNKNOWN_LENGTH, this);
    for (const bytes of this.#waiting.splice(0)) this.#stream.sendBody(Buffer.from(bytes), 0, bytes.length);
  }

  onConnectFailure(code: ErrorCode, message: string): void {
    this.#end(code === "TG_UPSTREAM_TIMEOUT" ? LATE : message);
  }

  #tick(now: number): void {
    const session = this.#session;
    if (session === undefined) return;
    session.sweep(now);
    if (!session.settled && now - session.openedAt > CONNECT_TIMEOUT) this.#end(LATE);
    if (now - this.#pingedAt < PING_EVERY) return;
    this.#pingedAt = now;
    session.ping(() => {});
  }

  // ── from the session ──

  onSettled(): void {}
  onRoom(): void {}
  onIdle(): void {}

  onRetired({ failure }: UpstreamSession): void {
    if (failure === undefined) this.#end("the controller is shutting down");
    else this.onUpstreamFailure(failure);
  }

  onGone({ failure = "" }: UpstreamSession): void {
    this.onUpstreamFailure(failure);
  }

  onFault(error: unknown): void {
    this.#end(messageOf(error));
  }

  // ── from the stream ──

  onInformational(): void {}
  onResponseBatch(): void {}
  onUpstreamDrain(): void {}

  onResponse({ status, headers }: ResponseHead): void {
    this.#responseHead = headers;
    const contentType = getHeader(headers, "content-type");
    if (status !== 200 || contentType?.startsWith("application/grpc") !== true)
      this.#end(statusOfHttp(status, contentType).message);
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    const problem = this.#reader.push(buffer, from, to);
    if (problem !== undefined) this.#end(problem.message);
  }

  onResponseEnd(trailers: HeaderList): void {
    const status = statusIn(trailers) ?? statusIn(this.#responseHead);
    const known = status === undefined || (status.code === 0 && status.message === "");
    this.#end(known ? "the controller has ended the stream" : `gRPC status ${status.code}: ${status.message}`);
  }

  onUpstreamFailure(message: string): void {
    this.#end(`the connection to the controller is lost: ${message}`);
  }

  onUpstreamFault(error: unknown): void {
    this.onFault(error);
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.close();
    this.#events.onEnd(reason);
  }
}

function targetOf({ protocol, hostname, port }: URL, root: string | undefined): PoolTarget {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol !== "https:") return { host, port: Number(port || 80), version: "HTTP/2.0" };
  return {
    host,
    port: Number(port || 443),
    version: "HTTP/2.0",
    tls: { root, insecure: false, insecureHost: false },
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Error(`cannot read ${file}: ${fileProblem(cause)}`, { cause });
  }
}
