/** The client's half of an exchange as the proxy sees it, independent of the version of HTTP. */
import type { ErrorCode } from "../base/errors.ts";
import type { Rostered } from "../base/roster.ts";
import type { Sweepable } from "../base/sweeper.ts";
import type { Addresses } from "../net/addresses.ts";
import type { TlsSession, TransportHandler } from "../net/transport.ts";
import type { MadeFields } from "./h1/serialize.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "./message/message.ts";

/** Length of a body: bytes, or one of these. */
export const UNKNOWN_LENGTH = -1;
/** Raw bytes both ways after a 101 (RFC 9110 7.8). */
export const TUNNEL = -2;

/** Where body bytes go. `buffer[from, to)` is valid during the call only. */
interface BodySink {
  onBody(buffer: Buffer, from: number, to: number): void;
  onBodyEnd(trailers: HeaderList): void;
}

/** How the client's side of a request ends without a response: the client left, or the gateway shut down or has a defect. */
export const UNANSWERED: ReadonlySet<ErrorCode> = new Set(["TG_CLIENT_GONE", "TG_SHUT_DOWN", "TG_INTERNAL"]);

/** The proxy's side of a client's request; called by the protocol engine. */
export interface ServerStream extends BodySink {
  /** What it is doing, for the task dump. */
  readonly activity: object;
  /** All bytes of one read have been handed over: a good moment to send what was gathered. Not after `onBodyEnd`. */
  onBodyBatch(): void;
  /**
   * The client is gone, or its connection was closed without a response: one of `UNANSWERED`. With any other code it broke the protocol or a
   * limit, and the engine has sent this error unless a response was open. Nothing more can be sent. `message` is for the log.
   */
  onClientGone(code: ErrorCode, message: string): void;
  /**
   * The client broke a limit while its response was open, and still reads. True: the response has ended with this error; otherwise
   * the engine aborts it, and `onClientGone` follows. Only the engine of HTTP/2 calls this. `detail` is for the log.
   */
  onClientFault?(code: ErrorCode, detail: string): boolean;
  /** The client accepts bytes again after `sendBody` returned false. */
  onClientDrain(): void;
}

/**
 * What the requests on a client's connection share. In HTTP/1.1, a connection carries one request after the other, and connection and
 * stream are one object; in HTTP/2, many streams refer to one connection.
 */
export interface ClientConnection extends Addresses {
  /** `<ip>:<port>` of the client. */
  readonly name: string;
  readonly protocol: "http" | "https";
  /** Set when the client's TLS ends at the gateway. */
  readonly tls: TlsSession | undefined;
  /** What the network authorization service has returned about the connection; expressions read it as `extauthz`. */
  readonly metadata: NetworkMetadata | undefined;
  /** Fields that the gateway adds to every request of the connection, with their lines; see proxy/fields/forwarding.ts. */
  madeFields: MadeFields | undefined;
}

export type NetworkMetadata = Readonly<Record<string, unknown>>;

/** The client's side of one request; implemented by each protocol version. */
export interface Downstream {
  readonly connection: ClientConnection;
  /** Length of the request's body: 0 = no body, UNKNOWN_LENGTH, otherwise bytes. */
  readonly requestLength: number;
  /** Bytes that have arrived so far of the request's body, or of the tunnel. */
  readonly bodyBytes: number;
  /** Original-case field names, one for each header, when the bind preserves them. */
  readonly rawNames: readonly string[] | null;
  /** Value of `Upgrade` when the client asks to leave HTTP, else ``. */
  readonly upgrade: string;
  readonly trailersAccepted: boolean;
  /** The request has `Forwarded` or a field whose name begins with X-Forwarded-. */
  readonly hasForwarded: boolean;
  /** The name of a field of the request has an underscore. */
  readonly hasUnderscore: boolean;
  /** Token of the watcher that the request belongs to, `` for none; see trace/token.ts. */
  readonly traceToken: string;
  /** CDN-Loop (RFC 8586) of the request, `` for none; see loop.ts. */
  readonly loop: string;
  /** Starts to pass the request body to the stream; `onBodyBatch` follows even without bytes. Before that, a bounded part is held. */
  readBody(): void;
  pauseBody(): void;
  resumeBody(): void;
  /** The gateway holds the response back until more of its body arrives: without another call, `streamIdleTimeout` ends the request. */
  awaitResponseBody(): void;
  /** 100, 103, …; not to clients of HTTP/1.0. */
  sendInformational(status: number, headers: HeaderList): void;
  /** `length`: bytes of the body that follows, UNKNOWN_LENGTH, or TUNNEL. May wait for the first body bytes until `flush`. */
  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void;
  /** False = wait for `onClientDrain`. */
  sendBody(buffer: Buffer, from: number, to: number): boolean;
  sendEnd(trailers: HeaderList): void;
  /** Sends what was gathered. False = wait for `onClientDrain`. */
  flush(): boolean;
  /** After `sendEnd` of a tunnel: what the client still sends is discarded. No event follows. */
  endTunnel(): void;
  /** Aborts the stream or connection, so the client does not mistake the response for a complete one. */
  abort(): void;
}

/** What handles the requests of a connection; called by the protocol engine, once for each stream. */
export interface StreamAcceptor {
  /** Makes the stream of a request; `start` is called once the engine is ready to be called back. */
  open(downstream: Downstream, request: HttpRequest): ServerStream & { start(): void };
  /**
   * The engine could not read a request and has responded with this error. `received`: what has arrived of it; undefined if the error
   * was not in a request's head.
   */
  rejected(from: ClientConnection, code: ErrorCode, detail: string, received: Buffer | undefined): void;
}

/**
 * The limits of a client's connection (docs/configuration.md#frontendpolicieshttp), with every default filled in. Times are
 * milliseconds, sizes bytes.
 */
export interface ConnectionLimits {
  /** Bytes of request line and header fields together. Default 61440. */
  readonly maxHeadSize: number;
  /** Default 100. */
  readonly maxHeaders: number;
  /** Bytes of the request target. Default 8192 (more: 414). */
  readonly maxTargetSize: number;
  /** Largest request body, 0 = unlimited (default). More: 413. */
  readonly maxRequestBodySize: number;
  /** A keep-alive connection without a request is closed after this. Default 600000. */
  readonly idleTimeout: number;
  /** From the first byte of a head to its end. Default 60000 (never above idleTimeout). Late: 408. */
  readonly headerReadTimeout: number;
  /** A body, in either direction, that makes no progress for this long ends the exchange. Default 300000. */
  readonly streamIdleTimeout: number;
  /** Bytes per second that a request body must average after a grace of 10 s. Default 240; 0 = off. */
  readonly minBodyRate: number;
  /** Graceful close after this age; 0 = off (default). */
  readonly maxConnectionDuration: number;
  readonly headerCase: "lowercase" | "preserve";
  /** How request fields with `_` in their names are handled. Absent: `allow`. */
  readonly underscores?: "allow" | "drop" | "reject";
  /** For connections that speak HTTP/2. Absent: the defaults of its fields. */
  readonly http2?: Http2Limits;
}

/** Limits that only HTTP/2 has; the others apply to it too. */
export interface Http2Limits {
  /** Window of a stream, bytes: what a client may send before any of it is taken. Absent: 262144, which grows while bytes are taken fast. */
  readonly windowSize?: number | undefined;
  /** Window of a connection, for all its streams together. Absent: 1048576, which grows with those of the streams. */
  readonly connectionWindowSize?: number | undefined;
  /** Bytes of a frame's payload. Absent: 16384. */
  readonly frameSize?: number | undefined;
  /** Bytes of a header section: its names and values, and 32 for each field (RFC 9113 6.5.2). Absent: `maxHeadSize`. */
  readonly maxHeaderSize?: number | undefined;
  /** A client that has sent nothing for this long is sent a PING. Absent: never. */
  readonly keepaliveInterval?: number | undefined;
  /** Time to acknowledge that PING before the connection ends. Absent: 20000. */
  readonly keepaliveTimeout?: number | undefined;
  /** Requests that a connection carries at a time. Absent: 100. */
  readonly maxConcurrentStreams?: number | undefined;
}

/** The bind of a connection that speaks HTTP. Its values are read when they are needed, so a reload reaches open connections. */
export interface HttpHost {
  readonly frontend: ConnectionLimits;
  /** Clients are asked to leave: HTTP/1.1 sends `Connection: close` with every response, HTTP/2 has GOAWAY for it. */
  readonly draining: boolean;
  /** A connection closes as soon as it carries no stream. */
  readonly closesIdle: boolean;
  /** The client has begun HTTP/2 on a connection without TLS: `to` replaces `from`, which does nothing from now on. */
  onVersionChange(from: HttpConnection, to: HttpConnection): void;
  /** The transport has closed. Every stream has ended before. */
  onConnectionClose(connection: HttpConnection): void;
  /** A defect of the gateway has ended the connection. */
  onFault(error: unknown): void;
}

/**
 * A client's connection as its bind sees it, in every version of HTTP: all that limits, drain and accounting need. Only the connection
 * has a list of its streams.
 */
export interface HttpConnection extends ClientConnection, TransportHandler, Rostered, Sweepable {
  /** Bytes of the plaintext if TLS ends at the gateway. */
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** What it is doing, with what its streams are doing, for the task dump. */
  readonly activity: { readonly state: string; readonly ageMs: number };
  /** Closes the connection now if it carries no stream; otherwise nothing: `closesIdle` closes it after its last one. */
  closeIfIdle(): void;
  /** Asks the client to reconnect: by the next response, or by closing a connection that stays idle for some seconds. */
  askToReconnect(): void;
  /** Ends the connection at once, and its streams by `onClientGone`; `reason` is for the log. */
  terminate(reason: string): void;
}
