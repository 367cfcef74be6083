/**
 * One request on its way through the gateway. A protocol engine of `http` opens an exchange for every request that it has read, and
 * calls it as the `ServerStream` of that request; `handle-request.ts` takes it through its phases. Its parts own their state: the
 * choices of phases 2 to 6, what policies see and have set, the request side and the response side with their bytes, the call to the
 * backend, the deadlines, and the result that telemetry reports.
 */
import { DEFAULT_BUFFERED_BYTES } from "../../base/buffered-bytes.ts";
import type { Milliseconds } from "../../base/durations.ts";
import { ERRORS, type ErrorCode, type Explained, type Why } from "../../base/errors.ts";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { Budget } from "../../cel/index.ts";
import { grpcStatusOfError, grpcTrailers } from "../../http/grpc-reply.ts";
import { nextHop } from "../../http/loop.ts";
import { getHeader, type HeaderList, type HttpRequest, type Latin1 } from "../../http/message/message.ts";
import { type Downstream, type ServerStream, UNANSWERED } from "../../http/stream.ts";
import { ShownVariables } from "../../telemetry/shown-variables.ts";
import { RequestSecrets } from "../../trace/secrets.ts";
import type { Upstream } from "../../upstream/connections/upstream.ts";
import { BufferShare } from "../body/buffer-budget.ts";
import { RecordedBodies } from "../body/recorded-bodies.ts";
import type { CompiledBind } from "../compile/compiled.ts";
import type { Services } from "../services/services.ts";
import { isLogged } from "../telemetry/log-access.ts";
import type { RequestSpan } from "../telemetry/request-span.ts";
import { RequestTrace } from "../trace/request-trace.ts";
import { ExchangeVariables, sensitiveNames } from "../variables/exchange-variables.ts";
import { Deadlines } from "./deadlines.ts";
import { type AttemptFailed, GONE, type PhaseResult, type WAIT } from "./phase-result.ts";
import { type PolicyState, PolicyView, UNTOUCHED } from "./policy-view.ts";
import { RequestSide } from "./request-side.ts";
import { ResponseSide } from "./response-side.ts";
import { Result } from "./result.ts";
import type { Retries } from "./retries.ts";
import { Selection } from "./selection.ts";

/** Takes exchanges through their phases: handle-request.ts. */
export interface Lifecycle {
  /** In the order in which they run; `Exchange.phase` is an index. */
  readonly phases: readonly { readonly name: string }[];
  /** Ends the current phase and runs those that follow, until one waits. Does nothing for a closed exchange. */
  endPhase(exchange: Exchange, result: PhaseResult): void;
}

/** The call to the backend over all its attempts; attempt.ts makes it. */
export interface BackendCall {
  /** Attempts so far, replays included. */
  readonly attempts: number;
  /** The endpoint of the last attempt. */
  readonly endpointName: string | undefined;
  /** `performance.now()` ms of the last attempt and of its response's head; 0 = not yet. */
  readonly startedAt: number;
  readonly answeredAt: number;
  /** The connection or stream of the request; undefined before there is one and after the end of the response. */
  readonly upstream: Upstream | undefined;
  /** Makes the next attempt; its outcome is an event unless it has failed at once. */
  attempt(): typeof WAIT | AttemptFailed;
  /** The whole response has been sent. */
  complete(): void;
  /** Drops the current attempt, if any, which says nothing about the endpoint. */
  abandon(): void;
  /** The limit of each attempt; 0 = none. */
  readonly attemptTimeout: Milliseconds;
  /** The current attempt has taken that long. */
  expireAttempt(): void;
  /** The deadline of the whole request has passed. */
  expire(): void;
  /** Drops a response that the retry policy does not pass on. */
  discardResponse(): void;
  /** The gateway responds in place of the backend, for this reason. */
  answeredInstead(error: string | null): void;
}

export class Exchange implements ServerStream {
  readonly downstream: Downstream;
  /** The request as policies have changed it so far. */
  readonly request: HttpRequest;
  /** The configuration that was in effect when the request came. */
  readonly bind: CompiledBind;
  readonly services: Services;
  readonly #lifecycle: Lifecycle;

  /** `performance.now()` ms. */
  readonly startedAt = performance.now();
  /** Identifies the request in logs, traces and spans; undefined where the configuration turns ids off. */
  readonly requestId: Latin1 | undefined;
  /** The header as the client sent it; policies may change or remove it. Not checked. */
  readonly traceparent: string | undefined;
  /** Set only if a watcher follows the request or the log explains it. */
  readonly trace: RequestTrace | undefined;
  /** Set only for sampled requests. */
  span: RequestSpan | undefined;
  /** The beginnings of both bodies, if the access log, metrics or spans read them. */
  recorded: RecordedBodies | undefined;

  /** Index into the phases of the lifecycle; -1 before the first. */
  phase = -1;
  /** The last phase has begun: later events are ignored. */
  closed = false;
  readonly selected = new Selection();
  readonly deadlines: Deadlines = new Deadlines(this);
  readonly requestSide: RequestSide;
  /** Set from the first attempt on. */
  call: BackendCall | undefined;
  readonly responseSide: ResponseSide;
  readonly result = new Result();

  /** Whether this is a gRPC call: as the client has sent it, or translated to one by a policy. */
  grpc: "no" | "sent" | "translated" = "no";
  /** Set only with a retry policy, from `select-backend` on. */
  retries: Retries | undefined;

  #policyView: PolicyView | undefined;
  #variables: ExchangeVariables | undefined;
  /** Set from the beginning if expressions record values of the request, because policies may remove a credential from it. */
  #secrets: RequestSecrets | undefined;
  #shown: ShownVariables | undefined;
  #share: BufferShare | undefined;
  #onClose: (() => void)[] | undefined;

  constructor(
    downstream: Downstream,
    request: HttpRequest,
    bind: CompiledBind,
    services: Services,
    lifecycle: Lifecycle,
  ) {
    this.downstream = downstream;
    this.request = request;
    this.bind = bind;
    this.services = services;
    this.#lifecycle = lifecycle;
    this.traceparent = getHeader(request.headers, "traceparent");
    this.requestId = bind.forwarding.requestId(request, downstream);
    this.requestSide = new RequestSide(this);
    this.responseSide = new ResponseSide(this);
    this.recorded = bind.recordedBodies && new RecordedBodies(bind.recordedBodies, this.bufferShare);
    this.trace = RequestTrace.of(this);
    if (bind.writesValues) this.#secretsOf().remember(request.headers);
    services.metrics.inFlight.count++;
  }

  /** CDN-Loop of further attempts, mirrored requests and callouts (http/loop.ts). */
  get loop(): Latin1 {
    return nextHop(this.downstream.loop, true);
  }

  /** For the task dump. Route and endpoint are undefined until they are chosen. */
  get activity() {
    return {
      phase: this.#lifecycle.phases[this.phase]?.name ?? "",
      attempt: this.call?.attempts ?? 0,
      ageMs: performance.now() - this.startedAt,
      request: `${this.request.method} ${this.request.authority}${redactTarget(this.request.path, SECRET_PARAMETERS)}`,
      route: this.selected.route?.label,
      endpoint: this.call?.endpointName,
      bytesReceived: this.downstream.bodyBytes,
      bytesSent: this.responseSide.bytes,
    };
  }

  // ── through the phases ──

  /** Begins the first phase. */
  start(): void {
    this.endPhase(undefined);
  }

  /** Ends the current phase with what an event has brought. */
  endPhase(result: PhaseResult): void {
    this.#lifecycle.endPhase(this, result);
  }

  /** The end of the response has been sent. */
  responseComplete(): void {
    this.call?.complete();
    this.endPhase(undefined);
  }

  /** The last phase begins: stops timers and cancels all work for this exchange. */
  close(): void {
    this.closed = true;
    this.deadlines.close();
    this.#share?.close();
    this.retries?.countedAt(undefined);
    if (this.#onClose !== undefined) for (const callback of this.#onClose) callback();
  }

  onClose(callback: () => void): void {
    if (this.closed) callback();
    else {
      this.#onClose ??= [];
      this.#onClose.push(callback);
    }
  }

  // ── from the client's connection ──

  onBody(buffer: Buffer, from: number, to: number): void {
    if (!this.requestSide.receive(buffer, from, to)) this.downstream.pauseBody();
  }

  onBodyEnd(trailers: HeaderList): void {
    this.requestSide.end(trailers);
    const { responseSide } = this;
    if (responseSide.tunnel) responseSide.onTunnelEnd();
    // An early response that is still held.
    else if (responseSide.head !== undefined && !responseSide.started) this.downstream.awaitResponseBody();
  }

  onBodyBatch(): void {
    this.requestSide.onBatch();
    if (this.call?.upstream?.flush() === false) this.downstream.pauseBody();
  }

  onClientGone(code: ErrorCode, message: string): void {
    if (this.closed) return;
    this.result.clientGone(code, message);
    if (!this.responseSide.started && !UNANSWERED.has(code)) this.#engineAnswered(code);
    this.call?.abandon();
    this.endPhase(GONE);
  }

  onClientFault(code: ErrorCode, detail: string): boolean {
    if (this.closed) return false;
    this.call?.abandon();
    this.result.blame(code, `${ERRORS[code].message}: ${detail}`);
    return this.responseSide.endGrpc(code);
  }

  /** Records the response that the engine has sent: for gRPC calls, a status (http2-stream.ts). */
  #engineAnswered(code: ErrorCode): void {
    const { request, result, responseSide } = this;
    const grpc = request.version === "HTTP/2" && this.grpc === "sent";
    result.status = grpc ? 200 : ERRORS[code].status;
    if (!grpc) return;
    const headers = grpcTrailers(grpcStatusOfError(code), ERRORS[code].message);
    responseSide.begin({ status: 200, headers }, 0, null);
  }

  onClientDrain(): void {
    this.responseSide.onDrain();
  }

  // ── for policies ──

  /** What policies see of this exchange; made on first use. */
  get policyView(): PolicyView {
    this.#policyView ??= new PolicyView(this);
    return this.#policyView;
  }

  /** What policies have set and established. */
  get policyState(): PolicyState {
    return this.#policyView ?? UNTOUCHED;
  }

  get variables(): ExchangeVariables {
    this.#variables ??= new ExchangeVariables(this);
    return this.#variables;
  }

  get shown(): ShownVariables {
    this.#shown ??= new ShownVariables(this.variables, this.#secretsOf());
    return this.#shown;
  }

  newBudget(): Budget {
    return new Budget(this.services.expressions.limits.perRequest);
  }

  /** The decision behind an error, if the access log or a trace shows it. `after`: see `Why`. */
  told(why: Why | undefined, after?: "deny"): Explained | undefined {
    if (why === undefined) return undefined;
    const { accessLog } = this.services;
    const logged = accessLog.explains && isLogged(this.bind, accessLog);
    return logged || this.trace !== undefined ? why(this.#secretsOf(), after) : undefined;
  }

  #secretsOf(): RequestSecrets {
    this.#secrets ??= new RequestSecrets(
      false,
      sensitiveNames(this),
      this.bind.policies.credentials.parametersOf(this.requestSide.arrivedTarget),
    );
    return this.#secrets;
  }

  logDefect(error: Error): void {
    this.services.log.error("a shadow policy failed inside the gateway", { error });
  }

  /** This exchange's part of the worker's budget for bodies. */
  get bufferShare(): BufferShare {
    this.#share ??= new BufferShare(
      this.services.buffers,
      this.bind.frontend.maxBufferedBytes ?? DEFAULT_BUFFERED_BYTES,
      { address: this.downstream.connection.remoteAddress, connection: this.downstream.connection },
    );
    return this.#share;
  }
}
