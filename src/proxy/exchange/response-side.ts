/**
 * The response side of an exchange: its head, from the upstream or made by the gateway, and body bytes on their way to the
 * client. Bytes of the upstream go directly to the client's connection unless the head has not been sent yet or a policy works
 * on the body; then they pass through a `BufferedBody`.
 */
import { httpDate } from "../../base/dates.ts";
import { ERRORS, type ErrorCode, type GatewayError } from "../../base/errors.ts";
import { grpcStatusIn, grpcStatusOfError, grpcTrailers, isGrpc } from "../../http/grpc-reply.ts";
import { alignNames } from "../../http/h1/serialize.ts";
import {
  getHeader,
  type HeaderList,
  type HttpRequest,
  type HttpResponse,
  type Latin1,
  type LocalReply,
} from "../../http/message/message.ts";
import { type Downstream, TUNNEL, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { applyHeaderEdits, type HeaderEdit } from "../../policies/contract/header-edits.ts";
import type {
  ResponseSource,
  ResponseTranslation,
  StageOwner,
  TranslationStage,
} from "../../policies/contract/types.ts";
import type { Upstream } from "../../upstream/connections/upstream.ts";
import type { BufferShare } from "../body/buffer-budget.ts";
import { type BodyDestination, type BodySide, BufferedBody } from "../body/buffered-body.ts";
import type { RecordedBodies } from "../body/recorded-bodies.ts";
import type { RequestTrace } from "../trace/request-trace.ts";
import type { Result } from "./result.ts";

/** What the response's side needs of its exchange. */
interface Owner {
  readonly request: Pick<HttpRequest, "version">;
  readonly downstream: Downstream;
  readonly trace: RequestTrace | undefined;
  recorded: RecordedBodies | undefined;
  readonly bufferShare: BufferShare;
  readonly closed: boolean;
  readonly call: { readonly upstream: Upstream | undefined } | undefined;
  readonly requestSide: { readonly complete: boolean; openTunnel(): void };
  readonly result: Pick<Result, "status" | "thrower">;
  responseComplete(): void;
  endPhase(answer: GatewayError | LocalReply): void;
}

const NO_HEADERS: HeaderList = [];
const NO_RESPONSE: HttpResponse = { status: 0, headers: [] };

/**
 * `none`: there is no response yet. `held`: there is one, which can still be replaced or dropped. `sent`: its head has been sent to the
 * client. `tunnel`: after a 101 or a CONNECT, both sides send bytes until both have ended.
 */
type ResponseState = "none" | "held" | "sent" | "tunnel";

export class ResponseSide implements BodySide, BodyDestination {
  get fromClient(): boolean {
    return false;
  }
  readonly #exchange: Owner;
  /** Status and headers, as policies have changed them so far; undefined until there is a response. */
  head: HttpResponse | undefined;
  /** Who made it, before policies replaced its body. */
  #source: ResponseSource = "backend";
  /** The fields after the body, once they have arrived. */
  trailers: HeaderList = NO_HEADERS;
  #state: ResponseState = "none";
  /** Bytes of the body, or of the tunnel, that were sent to the client. */
  bytes = 0;
  /** The response may have had body bytes, so its trace shows a body. */
  hasBody = false;
  /** Bytes, UNKNOWN_LENGTH or TUNNEL. */
  #length = UNKNOWN_LENGTH;
  /** Names of the upstream's fields in their original case; null where that is not preserved. */
  #rawNames: readonly string[] | null = null;
  /** The body, while it waits for the head to be sent or policies work on it. */
  #body: BufferedBody | undefined;
  /** Edits by policies that apply to every response to this request, including errors. */
  #edits: HeaderEdit[] | undefined;
  /** Translates head and body for the client (`grpcWeb`). */
  #translation: ResponseTranslation | undefined;
  /** The last stage of the body, which translates it. */
  #translator: TranslationStage | undefined;
  /** The upstream's end of a tunnel has been sent to the client. */
  #upstreamEnded = false;
  /** The upstream of a tunnel accepts no more bytes. */
  #upstreamStopped = false;

  constructor(exchange: Owner) {
    this.#exchange = exchange;
  }

  /** The response can no longer be replaced. */
  get started(): boolean {
    return this.#state === "sent" || this.#state === "tunnel";
  }

  get tunnel(): boolean {
    return this.#state === "tunnel";
  }

  /** Policies of the request have decided how responses to it change. */
  get changes(): boolean {
    return this.#edits !== undefined || this.#translation !== undefined;
  }

  /** The gRPC status in the response's head or trailers; undefined without one. */
  get grpcStatus(): number | undefined {
    return this.head && (grpcStatusIn(this.head.headers) ?? grpcStatusIn(this.trailers));
  }

  // ── the response begins ──

  /** The upstream's response; `length`: bytes, UNKNOWN_LENGTH or TUNNEL. */
  begin(head: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    this.#state = "held";
    this.head = head;
    this.#source = "backend";
    this.trailers = NO_HEADERS;
    this.#length = length;
    this.#rawNames = rawNames;
    this.hasBody = length !== 0 && length !== TUNNEL;
  }

  /** Drops the upstream's response, because the request is retried. */
  discard(): void {
    this.#state = "none";
    this.head = undefined;
    this.hasBody = false;
  }

  /** A response that the gateway makes itself; it replaces an upstream's response whose head has not been sent. */
  replace(head: HttpResponse, body: Buffer, source: ResponseSource): void {
    this.begin(head, body.length, null);
    this.#source = source;
    this.#body = BufferedBody.of(body, head, this, undefined);
  }

  edit(edit: HeaderEdit): void {
    this.#edits ??= [];
    this.#edits.push(edit);
  }

  translate(translation: ResponseTranslation): void {
    this.#translation = translation;
  }

  /** The body as policies see it. */
  get body(): BufferedBody {
    this.#body ??= new BufferedBody(this.head ?? NO_RESPONSE, this.#length, this, this.#exchange.bufferShare);
    return this.#body;
  }

  get source(): ResponseSource {
    return this.#body?.replaced === true ? "policy" : this.#source;
  }

  /** From now on the body waits for its head to be sent. */
  hold(): void {
    void this.body;
  }

  /** The whole body while it is held. */
  get heldBytes(): Uint8Array | undefined {
    return this.#body?.bytes;
  }

  /** Sends the head and the body bytes that are held; the rest follows as it arrives. */
  send(): void {
    const head = this.head;
    if (head === undefined) throw new Error("there is no response to send");
    this.#applyEdits(head);
    addDate(head.headers);
    if (this.#translation !== undefined) this.#translate(head, this.#translation);
    // A body that was held may have turned out to be incomplete; then an error has been sent instead.
    if (this.started) return;
    const body = this.#body;
    const length = body === undefined ? this.#length : body.length;
    this.#length = length;
    if (body !== undefined) this.hasBody = length !== TUNNEL && body.mayHaveBytes;
    this.#sendHead(head, length);
    if (length === TUNNEL) this.#openTunnel();
    if (body === undefined) return;
    // Only stages need the bytes that follow.
    if (!body.staged) this.#body = undefined;
    body.sendTo(this);
  }

  #applyEdits(head: HttpResponse): void {
    if (this.#edits === undefined) return;
    applyHeaderEdits(this.#edits, head.headers);
    this.#edits = undefined;
    this.#exchange.trace?.responseSnapshot("response headers", head);
  }

  #translate(head: HttpResponse, translation: ResponseTranslation): void {
    const make = translation(head);
    if (make === undefined) return;
    this.body.through((sink) => {
      this.#translator = make(sink);
      return this.#translator;
    });
  }

  #sendHead(head: HttpResponse, length: number): void {
    const { trace, result, downstream } = this.#exchange;
    trace?.responseSnapshot("final response", head);
    result.status = head.status;
    this.#state = "sent";
    const names = this.#rawNames === null ? null : alignNames(head.headers, this.#rawNames);
    downstream.sendHead(head, length, names);
  }

  /** Tunnelled bytes are not a message body, so they are not recorded. */
  #openTunnel(): void {
    const exchange = this.#exchange;
    this.#state = "tunnel";
    exchange.recorded = undefined;
    exchange.downstream.flush();
    exchange.requestSide.openTunnel();
  }

  // ── from the upstream ──

  receive(buffer: Buffer, from: number, to: number): void {
    if (!this.started) this.#exchange.downstream.awaitResponseBody();
    const more = this.#body === undefined ? this.sendBody(buffer, from, to) : this.#body.receive(buffer, from, to);
    if (!more) this.pauseSource();
  }

  /** The bytes of one read have all been received. */
  endBatch(): void {
    if (this.started && !this.closed && !this.flush()) this.pauseSource();
  }

  end(trailers: HeaderList): void {
    this.trailers = trailers;
    if (this.#body === undefined) this.sendEnd(trailers);
    else this.#body.end(trailers);
  }

  /**
   * Ends a gRPC response that has begun with the status of an error, which tells the client more than a reset. Returns false if the
   * client would not see it.
   */
  endGrpc(code: ErrorCode): boolean {
    const { head } = this;
    const trailers = grpcTrailers(grpcStatusOfError(code), ERRORS[code].message);
    if (head === undefined || this.#length !== UNKNOWN_LENGTH) return false;
    if (this.#translator !== undefined) {
      if (this.#translator.withinMessage) return false;
      this.trailers = trailers;
      this.#translator.end(trailers);
      return true;
    }
    const { request, downstream } = this.#exchange;
    // Trailers that an HTTP/1.1 client has not asked for are dropped. HTTP/2 always carries them, and every gRPC client reads them.
    if (!isGrpc(head.headers) || (request.version !== "HTTP/2" && !downstream.trailersAccepted)) return false;
    this.sendEnd(trailers);
    return true;
  }

  /** The upstream has ended a tunnel in both directions. */
  closeTunnel(): void {
    this.#upstreamStopped = true;
    if (this.#upstreamEnded) this.#endTunnel();
  }

  #endTunnel(): void {
    this.#exchange.downstream.endTunnel();
    this.#exchange.responseComplete();
  }

  /** The client has ended its direction of a tunnel. */
  onTunnelEnd(): void {
    if (this.#upstreamEnded) this.#exchange.responseComplete();
  }

  // ── to the client ──

  /** The client's connection has room again. */
  onDrain(): void {
    this.resumeSource();
    this.#body?.drained();
  }

  sendBody(buffer: Buffer, from: number, to: number): boolean {
    const { trace, recorded, downstream } = this.#exchange;
    this.bytes += to - from;
    trace?.responseBody(buffer, from, to);
    recorded?.response?.add(buffer, from, to);
    return downstream.sendBody(buffer, from, to);
  }

  sendEnd(trailers: HeaderList): void {
    const exchange = this.#exchange;
    // A translation may have moved them into the body.
    if (this.#translator === undefined) this.trailers = trailers;
    exchange.downstream.sendEnd(trailers);
    if (!this.tunnel || exchange.requestSide.complete) {
      exchange.responseComplete();
      return;
    }
    this.#upstreamEnded = true;
    if (this.#upstreamStopped) this.#endTunnel();
  }

  flush(): boolean {
    return this.#exchange.downstream.flush();
  }

  // ── for the body ──

  get closed(): boolean {
    return this.#exchange.closed;
  }

  get destination(): BodyDestination | undefined {
    return this.started ? this : undefined;
  }

  pauseSource(): void {
    this.#exchange.call?.upstream?.pause();
  }

  resumeSource(): void {
    if (!this.started) this.#exchange.downstream.awaitResponseBody();
    this.#exchange.call?.upstream?.resume();
  }

  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void {
    this.#exchange.result.thrower = owner;
    this.#exchange.endPhase(answer);
  }
}

/** RFC 9110 6.6.1: a response without Date is given one where it is made or forwarded. Caches compute its age from it. */
function addDate(headers: HeaderList): void {
  if (getHeader(headers, "date") === undefined) headers.push("date", httpDate() as Latin1);
}
