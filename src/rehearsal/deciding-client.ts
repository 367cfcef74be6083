import { formatHostPort } from "../base/listen-address.ts";
import type { RequestHead } from "../http/h1/parse-head.ts";
import type { MadeFields } from "../http/h1/serialize.ts";
import { RequestReader } from "../http/h2/request-head.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../http/message/message.ts";
import type { HeadError } from "../http/message/syntax.ts";
import { HeadReader } from "../http/server/head-reader.ts";
import {
  type ClientConnection,
  type ConnectionLimits,
  type Downstream,
  type NetworkMetadata,
  type ServerStream,
  UNKNOWN_LENGTH,
} from "../http/stream.ts";
import { type Addresses, Peer } from "../net/addresses.ts";
import type { TlsSession } from "../net/transport.ts";
import type { SampledHead } from "./sampled-head.ts";

/** Reading never yields, so these serve every decision of the thread. */
const HTTP1 = new HeadReader();
const HTTP2 = new RequestReader();

const NO_TRAILERS: HeaderList = [];
/** Stands for a body that is announced and not known. */
const BLANKS = Buffer.alloc(64 * 1024, " ");
/** Longest body that is made up: gateways refuse longer ones before they read them. */
const MAX_BODY = 16 * 1024 * 1024;

/** The client of a request that is decided and not sent: no bytes but those of its head, which the gateway's own parsers read. */
export class DecidingClient extends Peer implements ClientConnection, Downstream {
  readonly protocol: "http" | "https";
  readonly tls: TlsSession | undefined;
  metadata: NetworkMetadata | undefined;
  madeFields: MadeFields | undefined;
  requestLength = 0;
  bodyBytes = 0;
  rawNames: readonly string[] | null = null;
  upgrade = "";
  trailersAccepted = false;
  hasForwarded = false;
  hasUnderscore = false;
  /** Nobody watches. */
  readonly traceToken = "";
  loop = "";
  /** The gateway's own response; undefined: it has sent none. */
  response: HttpResponse | undefined;
  #stream: ServerStream | undefined;
  #lengthOfBody = (): number => 1;
  #isRead = false;

  constructor(from: Addresses, tls: TlsSession | undefined) {
    super(from);
    this.tls = tls;
    this.protocol = tls === undefined ? "http" : "https";
  }

  get connection(): ClientConnection {
    return this;
  }

  get name(): string {
    return formatHostPort(this.remoteAddress, this.remotePort);
  }

  /** The request as the gateway's parser reads it, or why that refuses it. */
  read({ bytes, fields, sample }: SampledHead, limits: ConnectionLimits): HttpRequest | HeadError {
    if (bytes === undefined) return this.#readHttp2(fields, sample.contentLength === "unknown", limits);
    const request = HTTP1.read(bytes, 0, bytes.length, limits, this.protocol);
    if (request === undefined) return HTTP1.error ?? { code: "TG_INVALID_REQUEST", detail: "the head is incomplete" };
    const { head } = HTTP1;
    this.requestLength = lengthOf(head);
    this.rawNames = head.rawNames;
    this.upgrade = head.upgrade;
    this.#take(head);
    return request;
  }

  /** The stream of the request, which gets the body if a policy reads it. `lengthOfBody`: bytes of one whose length is not announced. */
  attach(stream: ServerStream, lengthOfBody: () => number): void {
    this.#stream = stream;
    this.#lengthOfBody = lengthOfBody;
  }

  #readHttp2(fields: readonly string[], hasBody: boolean, limits: ConnectionLimits): HttpRequest | HeadError {
    const request = HTTP2.read(fields, false, this.protocol, limits);
    if ("code" in request) return request;
    this.requestLength = hasBody ? UNKNOWN_LENGTH : Math.max(0, HTTP2.contentLength);
    this.upgrade = HTTP2.protocol;
    this.#take(HTTP2);
    return request;
  }

  #take(head: Pick<RequestHead, "trailersAccepted" | "hasForwarded" | "hasUnderscore" | "loop">): void {
    this.trailersAccepted = head.trailersAccepted;
    this.hasForwarded = head.hasForwarded;
    this.hasUnderscore = head.hasUnderscore;
    this.loop = head.loop;
  }

  readBody(): void {
    if (this.#isRead) return;
    this.#isRead = true;
    // As bytes from a socket would: after the policy that reads them has begun to wait.
    queueMicrotask(() => this.#sendBlanks());
  }

  #sendBlanks(): void {
    const stream = this.#stream;
    const wanted = this.requestLength === UNKNOWN_LENGTH ? this.#lengthOfBody() : this.requestLength;
    const length = Math.min(wanted, MAX_BODY);
    while (this.bodyBytes < length) {
      const bytes = Math.min(BLANKS.length, length - this.bodyBytes);
      this.bodyBytes += bytes;
      stream?.onBody(BLANKS, 0, bytes);
    }
    stream?.onBodyBatch();
    stream?.onBodyEnd([...NO_TRAILERS]);
  }

  sendHead(response: HttpResponse): void {
    this.response = response;
  }

  sendBody(): boolean {
    return true;
  }

  flush(): boolean {
    return true;
  }

  pauseBody(): void {}
  resumeBody(): void {}
  awaitResponseBody(): void {}
  sendInformational(): void {}
  sendEnd(): void {}
  endTunnel(): void {}
  abort(): void {}
}

function lengthOf({ chunked, contentLength }: RequestHead): number {
  return chunked ? UNKNOWN_LENGTH : Math.max(0, contentLength);
}
