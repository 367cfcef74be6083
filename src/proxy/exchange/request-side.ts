/**
 * The request side of an exchange: body bytes from the client to the upstream, trailers, and the fields that policies decide about.
 * Bytes go directly from the client's connection to the upstream unless a policy needs the body; then they pass through a
 * `BufferedBody`.
 */
import { NO_BYTES } from "../../base/collected-bytes.ts";
import type { GatewayError } from "../../base/errors.ts";
import {
  getHeader,
  type HeaderList,
  type HttpRequest,
  type LocalReply,
  removeHeader,
} from "../../http/message/message.ts";
import { type Downstream, UNKNOWN_LENGTH } from "../../http/stream.ts";
import { dashed } from "../../policies/contract/own-fields.ts";
import type { StageOwner } from "../../policies/contract/types.ts";
import type { Upstream } from "../../upstream/connections/upstream.ts";
import type { BufferShare } from "../body/buffer-budget.ts";
import { type BodyDestination, type BodySide, BufferedBody } from "../body/buffered-body.ts";
import type { RecordedBodies } from "../body/recorded-bodies.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import { dropFromTrailers, dropLookalikes, dropUnderscores } from "../fields/client-fields.ts";
import type { RequestTrace } from "../trace/request-trace.ts";
import type { Result } from "./result.ts";

/** What the request's side needs of its exchange. */
interface Owner {
  readonly request: HttpRequest;
  readonly downstream: Downstream;
  readonly bind: CompiledBind;
  readonly trace: RequestTrace | undefined;
  readonly recorded: RecordedBodies | undefined;
  readonly bufferShare: BufferShare;
  readonly closed: boolean;
  readonly call: { readonly upstream: Upstream | undefined } | undefined;
  readonly result: Pick<Result, "thrower">;
  endPhase(answer: GatewayError | LocalReply): void;
}

/** A head without its target, which is known in any case. */
type ArrivedHead = Readonly<Omit<HttpRequest, "path" | "search">>;

export class RequestSide implements BodySide {
  get fromClient(): boolean {
    return true;
  }
  readonly #exchange: Owner;
  /** Path and query as the client sent them: policies rewrite those of the request. */
  readonly arrivedTarget: string;
  /** The same without query. */
  readonly arrivedPath: string;
  #arrived: ArrivedHead | undefined;
  /** The last byte of the body has arrived, or the client has ended its direction of a tunnel. */
  complete: boolean;
  /** The body, if a policy reads, replaces or pipes it, or a copy is kept for another attempt. */
  #body: BufferedBody | undefined;
  /** Body bytes are being read from the client's connection. */
  #reading = false;
  /** How many bytes the body may have (`maxRequestBodySize`), and the error for a longer one; undefined = any number. */
  #limit: { readonly bytes: number; readonly error: () => GatewayError } | undefined;
  /** Fields that policies have set or removed, `_` replaced by `-`. */
  #claimed: Set<string> | undefined;
  #allClaimed = false;

  constructor(exchange: Owner) {
    const { request, downstream } = exchange;
    this.#exchange = exchange;
    this.arrivedTarget = request.path + request.search;
    this.arrivedPath = request.path;
    this.complete = downstream.requestLength === 0;
  }

  /** The head before policies have changed it, if `keepHead` was called in time. */
  get arrived(): ArrivedHead {
    return this.#arrived ?? this.#exchange.request;
  }

  keepHead(): void {
    const { request } = this.#exchange;
    this.#arrived = { ...request, headers: [...request.headers] };
  }

  // ── the body ──

  /** The body as policies see it: from the first access on, its bytes pass through this object. */
  get body(): BufferedBody {
    if (this.#body === undefined) {
      const { request, downstream, bufferShare } = this.#exchange;
      const { requestLength } = downstream;
      this.#body =
        requestLength === 0
          ? BufferedBody.of(NO_BYTES, request, this, bufferShare)
          : new BufferedBody(request, requestLength, this, bufferShare);
    }
    return this.#body;
  }

  /** The whole body, if something has read it. */
  get bytes(): Uint8Array | undefined {
    if (this.#body !== undefined) return this.#body.bytes;
    return this.#exchange.downstream.requestLength === 0 ? NO_BYTES : undefined;
  }

  /** Whether the client sends a body, which may turn out to be empty when it is chunked. */
  get hasBody(): boolean {
    const { requestLength } = this.#exchange.downstream;
    return requestLength > 0 || requestLength === UNKNOWN_LENGTH;
  }

  /** Bytes for the upstream to expect, or UNKNOWN_LENGTH. */
  get length(): number {
    return this.#body === undefined ? this.#exchange.downstream.requestLength : this.#body.length;
  }

  /** The request can be sent again: its whole body is still held. */
  get repeatable(): boolean {
    return this.#body === undefined ? !(this.#reading && this.hasBody) : this.#body.repeatable;
  }

  /** Keeps up to `limit` bytes of the body, if there is one, so that it can be sent again. */
  keep(limit: number): void {
    if (this.hasBody) this.body.keep(limit);
  }

  /** After the request's head: sends what is held of the body and lets the rest follow. */
  sendTo(upstream: BodyDestination): void {
    if (this.#body === undefined) {
      if (this.hasBody) this.resumeSource();
    } else if (this.#body.length !== 0 || this.hasBody) this.#body.sendTo(upstream);
  }

  // ── from the client's connection ──

  /** See `PolicyContext.limitRequestBody`. */
  limit(bytes: number, error: () => GatewayError): void {
    // A policy of the gateway phase may have read the body, even to its end.
    if (this.#exchange.downstream.bodyBytes > bytes) throw error();
    this.#limit = { bytes, error };
  }

  /** The most bytes that the body may have; undefined = any number. */
  get maxBytes(): number | undefined {
    return this.#limit?.bytes;
  }

  /** The body is longer than it may be. */
  exceedLimit(): void {
    const limit = this.#limit;
    this.#limit = undefined;
    if (limit !== undefined) this.breakOff(limit.error(), { policy: "maxRequestBodySize", phase: "route" });
  }

  /** False = the client has to wait. */
  receive(buffer: Buffer, from: number, to: number): boolean {
    if (this.#limit !== undefined && this.#exchange.downstream.bodyBytes > this.#limit.bytes) {
      this.exceedLimit();
      return true;
    }
    const { call, trace, recorded } = this.#exchange;
    const body = this.#body;
    const upstream = call?.upstream;
    // The gateway has responded in place of the backend: the rest of the body is dropped.
    if (body === undefined && upstream === undefined) return true;
    trace?.requestBody(buffer, from, to);
    recorded?.request?.add(buffer, from, to);
    return body === undefined ? upstream?.sendBody(buffer, from, to) !== false : body.receive(buffer, from, to);
  }

  /** All bytes of one read have been handed over. */
  onBatch(): void {
    this.#body?.reportArrival();
  }

  /** The upstream has room again. */
  onDrain(): void {
    this.#exchange.downstream.resumeBody();
    this.#body?.drained();
  }

  end(trailers: HeaderList): void {
    this.complete = true;
    this.#sieve(trailers);
    this.#exchange.trace?.requestBodyEnded();
    if (this.#body === undefined) this.#exchange.call?.upstream?.sendEnd(trailers);
    else this.#body.end(trailers);
  }

  /** From now on, the client's bytes belong to a tunnel. */
  openTunnel(): void {
    this.complete = false;
    this.#exchange.downstream.readBody();
  }

  // ── fields ──

  /** A policy sets or removes this field (lower-case): removes client fields that a backend could take for it. */
  claimField(name: string): void {
    const { request, downstream, bind } = this.#exchange;
    const { ownFields } = bind.policies;
    const hasUnderscore = name.includes("_");
    if (downstream.hasUnderscore || hasUnderscore) dropLookalikes(request.headers, name, ownFields);
    // Only a chunked body can have trailers.
    const mayHaveTrailers = downstream.requestLength === UNKNOWN_LENGTH;
    if (!mayHaveTrailers && !hasUnderscore) return;
    this.#claimed ??= new Set();
    this.#claimed.add(dashed(name));
    if (mayHaveTrailers && this.#body !== undefined) this.#sieve(this.#body.trailers);
  }

  /** A policy decides about fields whose names are not known in advance. */
  claimAllFields(): void {
    const { request, downstream, bind } = this.#exchange;
    if (downstream.hasUnderscore) dropUnderscores(request.headers, bind.policies.ownFields, this.#claimed);
    this.#allClaimed = true;
    if (this.#body !== undefined) this.#sieve(this.#body.trailers);
  }

  /** Removes from the client's trailers, in place, those that a backend could take for a field that policies decided about. */
  #sieve(trailers: HeaderList): void {
    if (trailers.length === 0) return;
    if (this.#allClaimed) trailers.length = 0;
    const { policies, frontend } = this.#exchange.bind;
    dropFromTrailers(trailers, policies.ownFields, this.#claimed, frontend.underscores ?? "allow");
  }

  // ── for the body ──

  get closed(): boolean {
    return this.#exchange.closed;
  }

  get destination(): BodyDestination | undefined {
    return this.#exchange.call?.upstream;
  }

  pauseSource(): void {
    this.#exchange.downstream.pauseBody();
  }

  resumeSource(): void {
    if (this.#reading) this.#exchange.downstream.resumeBody();
    else {
      this.#reading = true;
      if (this.destination === undefined) this.#continue();
      this.#exchange.downstream.readBody();
    }
  }

  /** A policy reads the body before there is an upstream to respond to the client's expectation (RFC 9110 10.1.1). */
  #continue(): void {
    const { request, downstream } = this.#exchange;
    if (getHeader(request.headers, "expect") === undefined) return;
    removeHeader(request.headers, "expect");
    downstream.sendInformational(100, []);
  }

  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void {
    this.#exchange.result.thrower = owner;
    this.#exchange.endPhase(answer);
  }
}
