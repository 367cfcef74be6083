/**
 * One request on its way through the gateway. A protocol engine of `http` opens an exchange for every request that it has read, and
 * calls it as the `ServerStream` of that request; `handle-request.ts` takes it through its phases. Policies see it as their
 * `PolicyContext`. State that only one stage needs is in a separate part: the choices of phases 2 to 6, the request side and the
 * response side with their bytes, the call to the backend, and the result that telemetry reports.
 */
import { DEFAULT_BUFFERED_BYTES } from "../../base/buffered-bytes.ts";
import { ms } from "../../base/durations.ts";
import { ERRORS, type ErrorCode, type Explained, GatewayError, type Why } from "../../base/errors.ts";
import { redactTarget, SECRET_PARAMETERS } from "../../base/redaction.ts";
import { Budget } from "../../cel/index.ts";
import { grpcStatusOfError, grpcTrailers } from "../../http/grpc-reply.ts";
import { nextHop } from "../../http/loop.ts";
import type { HeaderList, HttpRequest, Latin1 } from "../../http/message/message.ts";
import { type Downstream, type ServerStream, UNANSWERED } from "../../http/stream.ts";
import type { HeaderEdit } from "../../policies/contract/header-edits.ts";
import type {
  ContentCoding,
  IncomingBody,
  MessageBody,
  PersistentSession,
  PolicyContext,
  RequestMetadata,
  ResponseTranslation,
  RetryPlan,
} from "../../policies/contract/types.ts";
import { ShadowLane } from "../../policies/shadow/lane.ts";
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
import { GrpcDeadline } from "./grpc-deadline.ts";
import { type AttemptFailed, GONE, type PhaseResult, type WAIT } from "./phase-result.ts";
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
  /** Drops the current attempt, if any. `countFailure`: outlier detection counts it against the endpoint. */
  abandon(how: { readonly countFailure: boolean }): void;
  /** The deadline of the whole request has passed. */
  expire(): void;
  /** Drops a response that the retry policy does not pass on. */
  discardResponse(): void;
  /** The gateway responds in place of the backend, for this reason. */
  answeredInstead(error: string | null): void;
}

const NO_METADATA: RequestMetadata = Object.freeze({});

export class Exchange implements ServerStream, PolicyContext {
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
  readonly requestSide: RequestSide;
  /** Set from the first attempt on. */
  call: BackendCall | undefined;
  readonly responseSide: ResponseSide;
  readonly result = new Result();

  requestTimeout = ms(0);
  backendRequestTimeout = ms(0);
  authorityMode: "auto" | "fixed" = "auto";
  /** A gRPC call, sent as such by the client or translated by a policy. */
  grpc = false;
  /** A policy has translated the client's request to gRPC. */
  translatedToGrpc = false;
  retry: RetryPlan | undefined;
  acceptedCoding: ContentCoding | undefined;
  session: PersistentSession | undefined;
  /** Set only with a retry policy, from `select-backend` on. */
  retries: Retries | undefined;

  /** Set only for gRPC calls whose client has set a deadline. */
  grpcDeadline: GrpcDeadline | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #variables: ExchangeVariables | undefined;
  /** Set from the beginning if expressions record values of the request, because policies may remove a credential from it. */
  #secrets: RequestSecrets | undefined;
  #shown: ShownVariables | undefined;
  #requestMetadata: RequestMetadata | undefined;
  #shadow: ShadowLane | undefined;
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

  /** For the task dump. */
  get activity(): {
    readonly phase: string;
    readonly attempt: number;
    readonly ageMs: number;
    readonly request: string;
    /** The route, and the endpoint of the last attempt; undefined until they are chosen. */
    readonly route: string | undefined;
    readonly endpoint: string | undefined;
    readonly bytesReceived: number;
    readonly bytesSent: number;
  } {
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

  /** Starts the timer of `requestTimeout`, when the exchange waits for the first time; the deadline counts from the request's start. */
  startDeadline(): void {
    if (this.requestTimeout === 0 || this.#deadline !== undefined) return;
    const left = Math.max(0, this.requestTimeout - (performance.now() - this.startedAt));
    this.#deadline = setTimeout(() => {
      if (this.closed || this.responseSide.started) return;
      this.call?.expire();
      this.endPhase(new GatewayError("TG_REQUEST_TIMEOUT"));
    }, left);
  }

  /** Starts the timer of a gRPC call's deadline, if it has one. Throws TG_INVALID_REQUEST for a malformed one. */
  startGrpcDeadline(): void {
    this.grpcDeadline ??= GrpcDeadline.of(this.request.headers, this.startedAt, () => {
      this.endPhase(new GatewayError("TG_DEADLINE_EXCEEDED"));
    });
  }

  /** Called when there is a response: its body may take as long as its sender and the client need. */
  stopDeadline(): void {
    if (this.#deadline === undefined) return;
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
  }

  /** The last phase begins: stops timers and cancels all work for this exchange. */
  close(): void {
    this.closed = true;
    this.stopDeadline();
    this.grpcDeadline?.stop();
    this.#share?.close();
    this.retries?.countAt(undefined);
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
    this.call?.abandon({ countFailure: false });
    this.endPhase(GONE);
  }

  onClientFault(code: ErrorCode, detail: string): boolean {
    if (this.closed) return false;
    this.call?.abandon({ countFailure: false });
    this.result.blame(code, `${ERRORS[code].message}: ${detail}`);
    return this.responseSide.endGrpc(code);
  }

  /** Records the response that the engine has sent: for gRPC calls, a status (http2-stream.ts). */
  #engineAnswered(code: ErrorCode): void {
    const { request, result, responseSide } = this;
    const grpc = request.version === "HTTP/2" && this.grpc && !this.translatedToGrpc;
    result.status = grpc ? 200 : ERRORS[code].status;
    if (!grpc) return;
    const headers = grpcTrailers(grpcStatusOfError(code), ERRORS[code].message);
    responseSide.begin({ status: 200, headers }, 0, null);
  }

  onClientDrain(): void {
    this.responseSide.onDrain();
  }

  // ── for policies ──

  get matchedPrefix(): string | undefined {
    return this.selected.matchedPrefix;
  }

  get matchedPath(): string {
    return this.selected.matchedPath;
  }

  preferEndpoint(name: string): boolean {
    return this.selected.preferEndpoint(name);
  }

  get calledEndpoint(): string | undefined {
    return this.selected.backend?.balancer === undefined ? undefined : this.call?.endpointName;
  }

  get variables(): ExchangeVariables {
    this.#variables ??= new ExchangeVariables(this);
    return this.#variables;
  }

  get shown(): ShownVariables {
    this.#shown ??= new ShownVariables(this.variables, this.#secretsOf());
    return this.#shown;
  }

  get shadow(): ShadowLane {
    this.#shadow ??= new ShadowLane(this);
    return this.#shadow;
  }

  /** What shadow policies would have done; undefined if the request met none. */
  get shadowed(): ShadowLane | undefined {
    return this.#shadow;
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

  get requestMetadata(): RequestMetadata {
    this.#requestMetadata ??= {};
    return this.#requestMetadata;
  }

  holdMetadata(bytes: number): void {
    if (!this.bufferShare.take(bytes)) throw new GatewayError("TG_BUFFERS_FULL");
  }

  /** Read-only view; allocated only once a policy has added something. */
  get found(): RequestMetadata {
    return this.#requestMetadata ?? NO_METADATA;
  }

  get maxBufferSize(): number {
    return this.bind.frontend.maxBufferSize;
  }

  get requestBody(): IncomingBody {
    return this.requestSide.body;
  }

  get responseBody(): MessageBody {
    return this.responseSide.body;
  }

  editResponse(edit: HeaderEdit): void {
    this.responseSide.edit(edit);
  }

  becomeGrpc(translate: ResponseTranslation): void {
    this.grpc = true;
    this.translatedToGrpc = true;
    // First, so that the error about a malformed deadline is translated too.
    this.responseSide.translate(translate);
    this.startGrpcDeadline();
  }

  claimField(name: string): void {
    this.requestSide.claimField(name);
  }

  claimAllFields(): void {
    this.requestSide.claimAllFields();
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
