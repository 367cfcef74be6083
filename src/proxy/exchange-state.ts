import { DEFAULT_BUFFERED_BYTES } from "../base/buffered-bytes.ts";
import { ERRORS, type ErrorCode, type GatewayError, type Reason } from "../base/errors.ts";
import type { Activation } from "../cel/index.ts";
import { grpcStatusIn } from "../http/grpc-reply.ts";
import type { HeaderList, HttpRequest, HttpResponse, LocalReply } from "../http/message.ts";
import { type Downstream, UNKNOWN_LENGTH } from "../http/stream.ts";
import { type CompiledChain, NO_POLICIES } from "../policies/compile.ts";
import { applyHeaderEdits, type HeaderEdit } from "../policies/shared/header-edits.ts";
import { dashed } from "../policies/shared/own-fields.ts";
import type { MessageBody, PolicyContext, RequestMetadata, RetryPlan } from "../policies/types.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import type { UpstreamWaiter } from "../upstream/h2/session-pool.ts";
import { type CallOutcome, NO_RESPONSE } from "../upstream/outlier.ts";
import type { Upstream, UpstreamEvents } from "../upstream/upstream.ts";
import { BufferShare } from "./body/buffer-budget.ts";
import { RecordedBodies } from "./body/recorded-bodies.ts";
import { RequestBody } from "./body/request-body.ts";
import { ResponseBody } from "./body/response-body.ts";
import { dropFromTrailers, dropLookalikes, dropUnderscores } from "./client-fields.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute } from "./compiled.ts";
import { RequestTrace } from "./request-trace.ts";
import type { Services } from "./services.ts";
import type { RequestSpan } from "./telemetry/request-span.ts";
import { ExchangeVariables } from "./variables.ts";

/** Indexes of the phases that end an exchange; handle-request.ts names them all. */
export const RESPOND = 8;
export const FINISH = 9;

const NOTHING: RequestMetadata = Object.freeze({});

/** What the phases of one request share. They take it as `x`; exchange.ts adds the traffic between the two sides. */
export abstract class ExchangeState implements PolicyContext {
  readonly request: HttpRequest;
  readonly downstream: Downstream;
  readonly bind: CompiledBind;
  readonly services: Services;
  readonly trace: RequestTrace | undefined;
  /** Where the configuration asks for bodies at the end of requests. */
  recorded: RecordedBodies | undefined;
  /** Of sampled requests. */
  span: RequestSpan | undefined;

  /** `performance.now()` ms of: the request, the call to the upstream, the upstream's response head; 0 = not yet. */
  readonly startedAt: number;
  calledAt = 0;
  answeredAt = 0;
  /** `performance.now()` ms of its end; 0 = not yet. */
  endedAt = 0;

  /** What the request is called in logs, traces and spans; undefined where the configuration wants none. */
  readonly requestId: string | undefined;
  /** Target as the client sent it: rewrites change the request. */
  readonly arrivedTarget: string;
  /** Host of the request, lower-case, without port. */
  host = "";
  listener: CompiledListener | undefined;
  route: CompiledRoute | undefined;
  /** Known with the route; metrics count it from `backendSelected` on. */
  backend: CompiledBackend | undefined;
  /** No policy has answered in the backend's place. */
  backendSelected = false;
  /** What the target expression of a `dynamic` backend has given; empty: the authority of the request. */
  dynamicTarget = "";
  endpoint: Endpoint | undefined;
  /** What the answer says about the endpoint, if the backend has rules for that. */
  outcome: CallOutcome | undefined;
  /** Name of the endpoint that was called last. */
  endpointName: string | undefined;
  /** Of the selected route, merged with those of the routes that delegated to it. */
  routePolicies: CompiledChain = NO_POLICIES;
  matchedPrefix: string | undefined;
  requestTimeout = 0;
  backendRequestTimeout = 0;
  authorityMode: "auto" | "fixed" = "auto";
  retry: RetryPlan | undefined;
  /** Attempts that the retry policy has asked for. */
  repeats = 0;
  /** With a retry policy: the request before the policies of the backend, from which each attempt starts. */
  beforeAttempt: HttpRequest | undefined;

  /** Index into PHASES: how far the request has come. */
  phase = 0;
  attempts = 0;
  status = 0;
  reason: Reason = "Upstream";
  error: string | undefined;
  responseBytes = 0;
  responseHasBody = false;
  /** The response head has gone to the client's side. */
  responded = false;
  closed = false;

  upstream: Upstream | undefined;
  /** Gives up waiting for a connection. */
  cancelConnect: (() => void) | undefined;
  requestTimer: NodeJS.Timeout | undefined;
  attemptTimer: NodeJS.Timeout | undefined;
  /** Body bytes have gone to an upstream, so the request cannot be sent again. */
  bodySent = false;
  requestEnded = false;
  tunnel = false;

  /** The request's body, when somebody reads, keeps or replaces it. */
  body: RequestBody | undefined;
  /** The response that is being made, from the run of its policies on. */
  response: HttpResponse | undefined;
  /** Bytes of its body as the upstream announces them, or UNKNOWN_LENGTH. */
  announced = UNKNOWN_LENGTH;
  /** The fields after its body, once they are there. */
  trailers: HeaderList = NO_HEADERS;
  /** Its body, while policies work on it. */
  heldResponse: ResponseBody | undefined;
  #variables: Activation | undefined;
  #requestMetadata: RequestMetadata | undefined;
  #edits: HeaderEdit[] | undefined;
  /** Fields that services have set or removed, dashed. */
  #claimed: Set<string> | undefined;
  /** A policy has decided about all fields. */
  #allClaimed = false;
  #onClose: (() => void)[] | undefined;
  #share: BufferShare | undefined;

  constructor(downstream: Downstream, request: HttpRequest, bind: CompiledBind, services: Services) {
    this.downstream = downstream;
    this.request = request;
    this.bind = bind;
    this.services = services;
    this.arrivedTarget = request.path + request.search;
    this.startedAt = performance.now();
    this.requestId = bind.forwarding.requestId(request, downstream);
    this.recorded = bind.recordedBodies && new RecordedBodies(bind.recordedBodies, this.bufferShare);
    this.trace = RequestTrace.of(this);
    services.metrics.inFlight.count++;
  }

  get variables(): Activation {
    this.#variables ??= new ExchangeVariables(this);
    return this.#variables;
  }

  get requestMetadata(): RequestMetadata {
    this.#requestMetadata ??= {};
    return this.#requestMetadata;
  }

  /** Read-only view; allocated only once a policy has added something. */
  get found(): RequestMetadata {
    return this.#requestMetadata ?? NOTHING;
  }

  /** How a gRPC call went, from the head of the response or from what follows its body; undefined when neither tells. */
  get grpcStatus(): number | undefined {
    return this.response && (grpcStatusIn(this.response.headers) ?? grpcStatusIn(this.trailers));
  }

  get maxBufferSize(): number {
    return this.bind.frontend.maxBufferSize;
  }

  get requestBody(): RequestBody {
    this.body ??= new RequestBody(this.downstream, this.request, this);
    return this.body;
  }

  /** Of the worker's budget, for the bodies that policies read. */
  get bufferShare(): BufferShare {
    this.#share ??= new BufferShare(
      this.services.buffers,
      this.bind.frontend.maxBufferedBytes ?? DEFAULT_BUFFERED_BYTES,
    );
    return this.#share;
  }

  /** The whole body of the request, when somebody has read it. */
  get requestBytes(): Uint8Array | undefined {
    return this.downstream.requestLength === 0 && this.body === undefined ? NO_BYTES : this.body?.bytes;
  }

  get responseBody(): MessageBody {
    return this.holdResponse(this.announced);
  }

  /** From now on the response's body waits for its head. */
  holdResponse(length: number): ResponseBody {
    this.heldResponse ??= new ResponseBody(
      length,
      this.response ?? { status: 0, headers: [] },
      this.upstream,
      (answer) => this.breakOff(answer),
      this.bufferShare,
    );
    return this.heldResponse;
  }

  editResponse(edit: HeaderEdit): void {
    this.#edits ??= [];
    this.#edits.push(edit);
  }

  /** Bytes of the body as the client has sent them. */
  noteRequestBody(buffer: Buffer, from: number, to: number): void {
    this.trace?.requestBody(buffer, from, to);
    this.recorded?.request?.add(buffer, from, to);
  }

  /** Bytes of the body that go to the client. */
  noteResponseBody(buffer: Buffer, from: number, to: number): void {
    this.responseBytes += to - from;
    this.trace?.responseBody(buffer, from, to);
    this.recorded?.response?.add(buffer, from, to);
  }

  /** Sends the end of the response's body. */
  sendEnd(trailers: HeaderList): void {
    this.trailers = trailers;
    this.downstream.sendEnd(trailers);
  }

  /** The call to the upstream has an answer, or none and a reason; nothing when no call is under way. */
  callEnded(status: number | null, error: string | null, headers: HeaderList = NO_HEADERS): void {
    this.trace?.callEnded(status, error);
    this.span?.callEnded(status, error, headers);
  }

  /** Puts the edits that policies have asked for into the response. */
  applyEdits(response: HttpResponse): void {
    if (this.#edits === undefined) return;
    applyHeaderEdits(this.#edits, response.headers);
    this.#edits = undefined;
    this.trace?.responseSnapshot("response headers", response);
  }

  claimField(name: string): void {
    const { request, downstream, bind, body } = this;
    const { ownFields } = bind.policies;
    const hasUnderscore = name.includes("_");
    if (downstream.hasUnderscore || hasUnderscore) dropLookalikes(request.headers, name, ownFields);
    // Only a chunked body can have trailers.
    const mayHaveTrailers = downstream.requestLength === UNKNOWN_LENGTH;
    if (!mayHaveTrailers && !hasUnderscore) return;
    this.#claimed ??= new Set();
    this.#claimed.add(dashed(name));
    if (mayHaveTrailers && body !== undefined) this.sieveTrailers(body.trailers);
  }

  claimAllFields(): void {
    const { request, downstream, bind, body } = this;
    if (downstream.hasUnderscore) dropUnderscores(request.headers, bind.policies.ownFields, this.#claimed);
    this.#allClaimed = true;
    if (body !== undefined) this.sieveTrailers(body.trailers);
  }

  /** Takes out of the client's trailers, in place, what stands for a field that somebody has decided about. */
  sieveTrailers(trailers: HeaderList): void {
    if (trailers.length === 0) return;
    if (this.#allClaimed) trailers.length = 0;
    const { policies, frontend } = this.bind;
    dropFromTrailers(trailers, policies.ownFields, this.#claimed, frontend.underscores ?? "allow");
  }

  onClose(callback: () => void): void {
    if (this.closed) callback();
    else {
      this.#onClose ??= [];
      this.#onClose.push(callback);
    }
  }

  /** Tells those who work for this exchange that it is over. */
  notifyClosed(): void {
    this.#share?.close();
    for (const callback of this.#onClose ?? []) callback();
  }

  /** The head of a 101 has gone out: from now on bytes flow both ways. */
  abstract openTunnel(): void;

  /** A body cannot go on: answers the client, or breaks the response off when its head has gone out. */
  abstract breakOff(answer: GatewayError | LocalReply): void;

  /** Records why the gateway answers instead of a backend. */
  blame(code: ErrorCode, message: string): void {
    this.reason = ERRORS[code].reason;
    this.error = message;
  }

  /** A deadline has passed or a phase has failed after the call began: nobody waits for the upstream any more. */
  dropUpstream(): void {
    this.cancelConnect?.();
    this.cancelConnect = undefined;
    const { upstream } = this;
    this.upstream = undefined;
    upstream?.destroy();
  }

  /** Nobody waits for the call any more; it counts against the endpoint only when that has failed. */
  abandonAttempt({ countFailure }: { readonly countFailure: boolean }): void {
    this.dropUpstream();
    if (countFailure) {
      this.endCall(0, 0);
      return;
    }
    this.endpoint?.abandon();
    this.endpoint = undefined;
    this.outcome = undefined;
  }

  /** The call is over: with `status`, after `seconds`, or with 0 for no usable answer. The balancer learns from it. */
  endCall(status: number, seconds: number): void {
    const { endpoint, outcome } = this;
    if (endpoint === undefined) return;
    const health = this.backend?.rules?.health;
    this.endpoint = undefined;
    this.outcome = undefined;
    if (health === undefined) endpoint.end(status !== 0 && status < 500, seconds);
    else {
      // A tunnel has no answer to classify: it has worked.
      const result = status === 0 ? NO_RESPONSE : (outcome ?? { healthy: status < 500, wait: undefined });
      const before = endpoint.evictedUntil;
      health.record(endpoint, result, seconds, this.retry?.backoff ?? 0);
      if (this.trace !== undefined && endpoint.evictedUntil > before) this.trace.evicted(endpoint);
    }
  }
}

const NO_BYTES = new Uint8Array(0);
const NO_HEADERS: HeaderList = [];

/** An exchange that can call an upstream and be called back. */
export interface CallingExchange extends ExchangeState, UpstreamEvents, UpstreamWaiter {
  /** Tries the call again if the retry policy wants that and it can be. `why` is for the trace. */
  retryCall(why: string): boolean;
}
