import { asError, ERRORS, type ErrorCode, GatewayError } from "../base/errors.ts";
import type { ResponseHead } from "../http/h1/parse-head.ts";
import type { HeaderList, HttpResponse, LocalReply } from "../http/message.ts";
import { type ServerStream, TUNNEL } from "../http/stream.ts";
import type { ConnectTimes } from "../upstream/connect-attempt.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { isLoop, LOOP_DETECTED } from "../upstream/dynamic.ts";
import type { UpstreamSession } from "../upstream/h2/session.ts";
import { attempt, canResend, sendHttp1, sendHttp2 } from "./attempt.ts";
import { type CallingExchange, ExchangeState, RESPOND } from "./exchange-state.ts";
import { endUpstream, finish } from "./finish.ts";
import { BACKEND_POLICIES, handleRequest, PHASES } from "./handle-request.ts";
import { fail, failWith, respond, respondLocally } from "./respond.ts";
import { canRepeat, prepareRepeat, reasonToRepeat } from "./retry.ts";

/** One request on its way through the gateway, and the traffic between the client's side and the upstream's side. */
export class Exchange extends ExchangeState implements ServerStream, CallingExchange {
  #upstreamEnded = false;

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

  // ── from the client ──

  onBody(buffer: Buffer, from: number, to: number): void {
    const { upstream, body } = this;
    if (body !== undefined) {
      this.noteRequestBody(buffer, from, to);
      if (!body.receive(buffer, from, to, upstream)) this.downstream.pauseBody();
      return;
    }
    if (upstream === undefined) return;
    this.bodySent = true;
    this.noteRequestBody(buffer, from, to);
    if (!upstream.sendBody(buffer, from, to)) this.downstream.pauseBody();
  }

  onBodyEnd(trailers: HeaderList): void {
    this.requestEnded = true;
    this.sieveTrailers(trailers);
    this.trace?.requestBodyEnded();
    if (this.body === undefined) this.upstream?.sendEnd(trailers);
    else this.body.end(trailers, this.upstream);
    if (this.tunnel && this.#upstreamEnded) endUpstream(this);
  }

  onBodyBatch(): void {
    if (this.upstream?.flush() === false) this.downstream.pauseBody();
  }

  onClientGone(code: ErrorCode, message: string): void {
    if (this.closed) return;
    this.error ??= message;
    if (!this.responded) {
      this.reason = ERRORS[code].reason;
      // What the engine has answered; nothing to a client that is gone.
      if (code !== "TG_CLIENT_GONE") this.status = ERRORS[code].status;
    }
    this.abandonAttempt({ countFailure: false });
    finish(this);
  }

  onClientDrain(): void {
    this.upstream?.resume();
  }

  breakOff(answer: GatewayError | LocalReply): void {
    if (this.closed) return;
    this.abandonAttempt({ countFailure: false });
    if (!this.responded) {
      this.heldResponse = undefined;
      if (answer instanceof GatewayError) failWith(this, answer);
      else respondLocally(this, answer);
      return;
    }
    if (answer instanceof GatewayError) this.blame(answer.code, answer.message);
    else this.error ??= "a policy broke the response off";
    this.downstream.abort();
    finish(this);
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
    this.callEnded(head.status, null, head.headers);
    this.trace?.responseSnapshot("raw response", response);
    this.outcome = this.backend?.rules?.health?.classify(this, response);
    if (length === TUNNEL && !this.#acceptsTunnel(head)) return;
    this.trace?.responseSnapshot("backend response ready", response);
    this.responseHasBody = length !== 0 && length !== TUNNEL;
    if (this.retry !== undefined && length !== TUNNEL && this.#retryOf(response)) return;
    this.#respond(response, length, head.rawNames);
  }

  #respond(response: HttpResponse, length: number, rawNames: readonly string[] | null): void {
    try {
      respond(this, response, length, rawNames);
    } catch (error) {
      this.abandonAttempt({ countFailure: false });
      failWith(this, error);
      return;
    }
    if (length === TUNNEL && this.responded) this.openTunnel();
  }

  openTunnel(): void {
    if (this.tunnel) return;
    this.tunnel = true;
    // What goes through a tunnel is nobody's body.
    this.recorded = undefined;
    this.downstream.flush();
    this.downstream.readBody();
  }

  onResponseBody(buffer: Buffer, from: number, to: number): void {
    if (this.heldResponse !== undefined) {
      this.heldResponse.receive(buffer, from, to);
      return;
    }
    this.noteResponseBody(buffer, from, to);
    if (!this.downstream.sendBody(buffer, from, to)) this.upstream?.pause();
  }

  onResponseBatch(): void {
    if (!this.closed && this.responded && !this.downstream.flush()) this.upstream?.pause();
  }

  onResponseEnd(trailers: HeaderList): void {
    if (this.closed) return;
    if (this.outcome !== undefined) this.backend?.rules?.health?.classifyTrailers(this, this.outcome, trailers);
    this.span?.callTrailers(trailers);
    if (this.heldResponse !== undefined) {
      this.upstream = undefined;
      this.heldResponse.end(trailers);
      return;
    }
    this.sendEnd(trailers);
    if (this.tunnel && !this.requestEnded) {
      this.#upstreamEnded = true;
      return;
    }
    endUpstream(this);
  }

  onUpstreamFailure(message: string, answered: boolean): void {
    if (this.closed) return;
    const upstream = this.upstream;
    this.upstream = undefined;
    this.callEnded(null, message);
    const stale = !this.responded && upstream !== undefined && canResend(this, upstream, answered);
    // That a connection was closed while it idled says nothing about the endpoint.
    this.abandonAttempt({ countFailure: !stale });
    if (this.responded) {
      this.blame("TG_UPSTREAM_FAILED", `upstream call failed: ${message}`);
      this.downstream.abort();
      finish(this);
    } else if (stale) attempt(this, true);
    else if (this.phase < RESPOND && this.retryCall(message)) return;
    else fail(this, "TG_UPSTREAM_FAILED", message);
  }

  onUpstreamFault(error: unknown): void {
    this.services.log.error("a request failed inside the gateway", { error: asError(error) });
    if (this.closed) return;
    this.blame("TG_INTERNAL", ERRORS.TG_INTERNAL.message);
    this.abandonAttempt({ countFailure: false });
    this.downstream.abort();
    finish(this);
  }

  onUpstreamDrain(): void {
    this.downstream.resumeBody();
  }

  // ── from the attempt ──

  onConnection(connection: UpstreamConnection): void {
    this.cancelConnect = undefined;
    this.trace?.connected(connection);
    if (this.backend?.target.type === "dynamic" && isLoop(this.downstream.connection, connection)) {
      connection.destroy();
      this.onConnectFailure("TG_UPSTREAM_FAILED", LOOP_DETECTED, connection.times);
    } else if (this.request.method === "CONNECT") this.#onTunnel(connection);
    else sendHttp1(this, connection);
  }

  onSession(session: UpstreamSession): void {
    this.cancelConnect = undefined;
    this.trace?.connected(session);
    sendHttp2(this, session);
  }

  #onTunnel(upstream: UpstreamConnection): void {
    this.upstream = upstream;
    this.answeredAt = performance.now();
    clearTimeout(this.attemptTimer);
    clearTimeout(this.requestTimer);
    upstream.openTunnel(this);
    this.callEnded(200, null);
    this.#respond({ status: 200, headers: [] }, TUNNEL, null);
  }

  onConnectFailure(code: ErrorCode, message: string, times: ConnectTimes): void {
    this.cancelConnect = undefined;
    if (this.closed) return;
    this.trace?.notConnected(times);
    this.callEnded(null, message);
    // That too many requests wait says nothing about the endpoint.
    this.abandonAttempt({ countFailure: code !== "TG_POOL_FULL" });
    if (!this.retryCall(message)) fail(this, code, message);
  }

  retryCall(why: string): boolean {
    if (!canRepeat(this)) return false;
    prepareRepeat(this, why, () => {
      this.phase = BACKEND_POLICIES;
      handleRequest(this);
    });
    return true;
  }

  /** An answer that the retry policy would rather not pass on is dropped for another attempt. */
  #retryOf(response: HttpResponse): boolean {
    if (!canRepeat(this)) return false;
    this.response = response;
    const why = reasonToRepeat(this, response);
    this.response = undefined;
    if (why === undefined) return false;
    const seconds = (performance.now() - this.calledAt) / 1000;
    this.dropUpstream();
    this.endCall(response.status, seconds);
    this.answeredAt = 0;
    return this.retryCall(why);
  }

  /** The upstream may only switch to the protocol that the client asked for (RFC 9110 7.8). */
  #acceptsTunnel(head: ResponseHead): boolean {
    const asked = this.downstream.upgrade;
    if (asked !== "" && head.upgrade.toLowerCase() === asked.toLowerCase()) {
      head.headers.push("connection", "upgrade", "upgrade", head.upgrade);
      return true;
    }
    this.abandonAttempt({ countFailure: true });
    fail(
      this,
      "TG_UPGRADE_MISMATCH",
      `backend tried ${head.upgrade || "nothing"} but ${asked || "nothing"} was requested`,
    );
    return false;
  }
}
