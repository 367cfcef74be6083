import { asError, ERRORS, type ErrorCode, type Reason } from "../base/errors.ts";
import type { ResponseHead } from "../http/h1/parse-head.ts";
import type { HeaderList, HttpRequest, HttpResponse } from "../http/message.ts";
import { type Downstream, type ServerStream, TUNNEL } from "../http/stream.ts";
import { type CompiledChain, NO_POLICIES } from "../policies/compile.ts";
import type { PolicyContext } from "../policies/types.ts";
import type { UpstreamConnection, UpstreamEvents } from "../upstream/connection.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { attempt, canRetry } from "./attempt.ts";
import type { CompiledBackend, CompiledBind, CompiledListener, CompiledRoute } from "./compiled.ts";
import { finish } from "./finish.ts";
import { fail, failWith, handleRequest, PHASES } from "./handle-request.ts";
import { RequestTrace } from "./request-trace.ts";
import { respond } from "./respond.ts";
import type { Services } from "./services.ts";

/**
 * One request on its way through the gateway: the state that the phases share, and the traffic between the client's side
 * and the upstream's side once both are there.
 */
export class Exchange implements ServerStream, UpstreamEvents, PolicyContext {
  readonly request: HttpRequest;
  readonly downstream: Downstream;
  readonly bind: CompiledBind;
  readonly services: Services;
  readonly trace: RequestTrace | undefined;

  /** `performance.now()` ms of: the request, the call to the upstream, the upstream's response head; 0 = not yet. */
  readonly startedAt: number;
  calledAt = 0;
  answeredAt = 0;

  /** Target as the client sent it: rewrites change the request. */
  readonly arrivedTarget: string;
  /** Host of the request, lower-case, without port. */
  host = "";
  listener: CompiledListener | undefined;
  route: CompiledRoute | undefined;
  backend: CompiledBackend | undefined;
  endpoint: Endpoint | undefined;
  /** Name of the endpoint that was called last. */
  endpointName: string | undefined;
  /** Of the selected route, merged with those of the routes that delegated to it. */
  routePolicies: CompiledChain = NO_POLICIES;
  matchedPrefix: string | undefined;
  requestTimeout = 0;
  backendRequestTimeout = 0;
  authorityMode: "auto" | "fixed" = "auto";

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
  over = false;

  upstream: UpstreamConnection | undefined;
  /** Gives up waiting for a connection. */
  cancelConnect: (() => void) | undefined;
  requestTimer: NodeJS.Timeout | undefined;
  attemptTimer: NodeJS.Timeout | undefined;
  /** Body bytes have gone to an upstream, so the request cannot be sent again. */
  bodySent = false;
  requestEnded = false;
  tunnel = false;
  #upstreamEnded = false;

  constructor(downstream: Downstream, request: HttpRequest, bind: CompiledBind, services: Services) {
    this.downstream = downstream;
    this.request = request;
    this.bind = bind;
    this.services = services;
    this.arrivedTarget = request.path + request.search;
    this.startedAt = performance.now();
    const tracer = services.watchers.claim(request, this.startedAt);
    this.trace = tracer === undefined ? undefined : new RequestTrace(tracer, this);
  }

  start(): void {
    handleRequest(this);
  }

  /** For the task dump. */
  get activity(): {
    readonly phase: string;
    readonly attempt: number;
    readonly ageMs: number;
    readonly request: string;
  } {
    return {
      phase: PHASES[this.phase]?.name ?? "",
      attempt: this.attempts,
      ageMs: performance.now() - this.startedAt,
      request: `${this.request.method} ${this.request.authority}${this.request.path}`,
    };
  }

  /** Records why the gateway answers instead of a backend. */
  blame(code: ErrorCode, message: string): void {
    this.reason = ERRORS[code].reason;
    this.error = message;
  }

  // ── from the client ──

  onBody(buffer: Buffer, from: number, to: number): void {
    const { upstream } = this;
    if (upstream === undefined) return;
    this.bodySent = true;
    this.trace?.requestBody(buffer, from, to);
    if (!upstream.sendBody(buffer, from, to)) this.downstream.pauseBody();
  }

  onBodyEnd(trailers: HeaderList): void {
    this.requestEnded = true;
    this.upstream?.sendEnd(trailers);
    if (this.tunnel && this.#upstreamEnded) this.#endUpstream();
  }

  onBodyBatch(): void {
    if (this.upstream?.flush() === false) this.downstream.pauseBody();
  }

  onClientGone(code: ErrorCode, message: string): void {
    if (this.over) return;
    this.error ??= message;
    if (!this.responded) {
      this.reason = ERRORS[code].reason;
      // What the engine has answered; nothing to a client that is gone.
      if (code !== "TG_CLIENT_GONE") this.status = ERRORS[code].status;
    }
    this.dropUpstream();
    this.endpoint?.abandon();
    this.endpoint = undefined;
    finish(this);
  }

  onClientDrain(): void {
    this.upstream?.resume();
  }

  // ── from the upstream ──

  onInformational(head: ResponseHead): void {
    this.downstream.sendInformational(head.status, head.headers);
  }

  onResponse(head: ResponseHead, length: number): void {
    this.answeredAt = performance.now();
    clearTimeout(this.attemptTimer);
    clearTimeout(this.requestTimer);
    const response: HttpResponse = { status: head.status, headers: head.headers };
    this.trace?.callEnded(head.status, null);
    this.trace?.responseSnapshot("raw response", response);
    if (length === TUNNEL && !this.#acceptsTunnel(head)) return;
    this.trace?.responseSnapshot("backend response ready", response);
    this.responseHasBody = length !== 0 && length !== TUNNEL;
    try {
      respond(this, response, length, head.rawNames);
    } catch (error) {
      this.#giveUpCall();
      failWith(this, error);
      return;
    }
    if (length !== TUNNEL) return;
    this.tunnel = true;
    this.downstream.flush();
    this.downstream.readBody();
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    this.responseBytes += to - from;
    this.trace?.responseBody(buffer, from, to);
    if (!this.downstream.sendBody(buffer, from, to)) this.upstream?.pause();
  }

  onResponseBatch(): void {
    if (!this.over && !this.downstream.flush()) this.upstream?.pause();
  }

  onResponseEnd(trailers: HeaderList): void {
    if (this.over) return;
    this.downstream.sendEnd(trailers);
    if (this.tunnel && !this.requestEnded) {
      this.#upstreamEnded = true;
      return;
    }
    this.#endUpstream();
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    if (this.over) return;
    const upstream = this.upstream;
    this.upstream = undefined;
    this.trace?.callEnded(null, message);
    this.endpoint?.end(false, 0);
    this.endpoint = undefined;
    if (this.responded) {
      this.blame("TG_UPSTREAM_FAILED", `upstream call failed: ${message}`);
      this.downstream.abort();
      finish(this);
    } else if (upstream !== undefined && canRetry(this, upstream, answered)) attempt(this, true);
    else fail(this, "TG_UPSTREAM_FAILED", message);
  }

  onUpstreamFault(error: unknown): void {
    this.services.log.error("a request failed inside the gateway", { error: asError(error) });
    if (this.over) return;
    this.blame("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
    this.#giveUpCall();
    this.downstream.abort();
    finish(this);
  }

  onUpstreamDrain(): void {
    this.downstream.resumeBody();
  }

  // ── from the attempt ──

  onConnectFailure(code: ErrorCode, message: string): void {
    this.cancelConnect = undefined;
    if (this.over) return;
    this.trace?.callEnded(null, message);
    this.endpoint?.end(false, 0);
    this.endpoint = undefined;
    fail(this, code, code === "TG_UPSTREAM_FAILED" ? message : undefined);
    if (code !== "TG_UPSTREAM_FAILED") this.error = `${this.error}: ${message}`;
  }

  /** A deadline has passed or a phase has failed after the call began: nobody waits for the upstream any more. */
  dropUpstream(): void {
    this.cancelConnect?.();
    this.cancelConnect = undefined;
    const { upstream } = this;
    this.upstream = undefined;
    upstream?.destroy();
  }

  /** The upstream may only switch to the protocol that the client asked for (RFC 9110 7.8). */
  #acceptsTunnel(head: ResponseHead): boolean {
    const asked = this.downstream.upgrade;
    if (asked !== "" && head.upgrade.toLowerCase() === asked.toLowerCase()) {
      head.headers.push("connection", "upgrade", "upgrade", head.upgrade);
      return true;
    }
    this.#giveUpCall();
    fail(
      this,
      "TG_UPGRADE_MISMATCH",
      `backend tried ${head.upgrade || "nothing"} but ${asked || "nothing"} was requested`,
    );
    return false;
  }

  /** The upstream has answered, but its answer cannot be used. */
  #giveUpCall(): void {
    this.dropUpstream();
    this.endpoint?.end(false, 0);
    this.endpoint = undefined;
  }

  #endUpstream(): void {
    const now = performance.now();
    this.upstream = undefined;
    this.endpoint?.end(this.status < 500, (now - this.calledAt) / 1000);
    this.endpoint = undefined;
    finish(this);
  }
}
