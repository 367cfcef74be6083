/** The two halves of an exchange as the proxy sees them, whatever the protocol version on either side. */
import type { ErrorCode } from "../base/errors.ts";
import type { Addresses } from "../net/addresses.ts";
import type { TlsSession } from "../net/transport.ts";
import type { MadeFields } from "./h1/serialize.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "./message.ts";

/** Length of a body: bytes, or one of these. */
export const UNKNOWN_LENGTH = -1;
/** Raw bytes both ways after a 101 (RFC 9110 7.8). */
export const TUNNEL = -2;

/** Where body bytes go. `buffer[from, to)` is valid during the call only. */
export interface BodySink {
  onBody(buffer: Buffer, from: number, to: number): void;
  onBodyEnd(trailers: HeaderList): void;
}

/** The proxy's side of a client's request; called by the protocol engine. */
export interface ServerStream extends BodySink {
  /** What one read brought has been handed over: a good moment to send what was gathered. Not after `onBodyEnd`. */
  onBodyBatch(): void;
  /**
   * The client is gone (`TG_CLIENT_GONE`) or broke the protocol or a limit, and the engine has answered it with this error
   * if no response was open. Nothing can be sent any more. `message` is for the log.
   */
  onClientGone(code: ErrorCode, message: string): void;
  /** The client takes bytes again after `sendBody` returned false. */
  onClientDrain(): void;
}

/**
 * A client's connection, as far as the requests on it share something. In HTTP/1.1 it carries one request after the other, and
 * connection and stream are one object; in HTTP/2 many streams refer to one connection.
 */
export interface ClientConnection extends Addresses {
  readonly protocol: "http" | "https";
  /** Set when the client's TLS ends at the gateway. */
  readonly tls: TlsSession | undefined;
  /** What the network authorization service has returned about the connection; expressions read it as `extauthz`. */
  readonly metadata: NetworkMetadata | undefined;
  /** Fields that the gateway adds to every request of the connection, with their lines; see proxy/forwarding.ts. */
  madeFields: MadeFields | undefined;
}

export type NetworkMetadata = Readonly<Record<string, unknown>>;

/** The client's side of one request; implemented by each protocol version. */
export interface Downstream {
  readonly connection: ClientConnection;
  /** Of the request: 0 = none, UNKNOWN_LENGTH = chunked, else its bytes. */
  readonly requestLength: number;
  /** Of the request's body, or of the tunnel that it has become: what has arrived so far. */
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
  /** Lets the request body flow into the stream, `onBodyBatch` always following; before that it is held, bounded. */
  readBody(): void;
  pauseBody(): void;
  resumeBody(): void;
  /** 100, 103, …; not to clients of HTTP/1.0. */
  sendInformational(status: number, headers: HeaderList): void;
  /** `length`: bytes of the body that follows, UNKNOWN_LENGTH, or TUNNEL. May wait for the first body bytes until `flush`. */
  sendHead(response: HttpResponse, length: number, rawNames: readonly string[] | null): void;
  /** False = wait for `onClientDrain`. */
  sendBody(buffer: Buffer, from: number, to: number): boolean;
  sendEnd(trailers: HeaderList): void;
  /** Sends what was gathered. False = wait for `onClientDrain`. */
  flush(): boolean;
  /** Breaks the connection so that the client cannot take the response for complete. */
  abort(): void;
}

/** What a protocol engine needs from the proxy. */
export interface StreamAcceptor {
  /** Makes the stream of a request; `start` is called once the engine is ready to be called back. */
  open(downstream: Downstream, request: HttpRequest): ServerStream & { start(): void };
  /**
   * A request that the engine could not read and has answered with this error. `received`: what is there of it; undefined when
   * it is not the request but the rest of a body that broke off.
   */
  refused(from: Addresses, code: ErrorCode, detail: string, received: Buffer | undefined): void;
}
