/**
 * The gRPC stream to a processing service for one exchange. `processSide` and the body stages send messages and listen for the
 * responses about their part; the first failure reaches every listener, and when the exchange closes, so does the stream.
 *
 * The decisions of the policy are here, because body stages make them too, after the policy has run.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { GatewayError } from "../../base/errors.ts";
import { grpcEndText } from "../../base/grpc-codes.ts";
import type {
  ImmediateResponse,
  ProcessingRequestSchema,
  ProcessingResponse as ProcessingResponseMessage,
} from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { grpcStatusIn, isGrpc } from "../../http/grpc-reply.ts";
import type { LocalReply } from "../../http/message/message.ts";
import type { Phase } from "../../trace/events.ts";
import { type Callout, reasonOf } from "../../upstream/callouts/callout.ts";
import type { GrpcStream } from "../../upstream/callouts/grpc-call.ts";
import { isUnreadable } from "../../upstream/callouts/http-call.ts";
import { applied, Decisions, failed, rejected, unable } from "../contract/decisions.ts";
import { NO_PSEUDO } from "../contract/header-edits.ts";
import type { CalloutContext, PolicyContext, StageOwner } from "../contract/types.ts";
import { headerEdits, type InvalidTarget, invalidTarget, replyHeaders } from "../envoy/convert.ts";
import type { process as ProcessMethod } from "../envoy/methods.ts";
import { callFor } from "../shared/call-for.ts";
import { rejectionReply } from "../shared/rejection.ts";

/** A message to the service, with the fields that are set. */
export type ProcessingRequest = Extract<
  MessageInitShape<typeof ProcessingRequestSchema>,
  { readonly $typeName?: never }
>;
/** A message from the service. */
export type ProcessingResponse = ProcessingResponseMessage;

/** The parts of an exchange, named as in the service's responses. */
type ExchangePart = Exclude<NonNullable<ProcessingResponse["response"]["case"]>, "immediateResponse">;

export type Direction = "request" | "response";

/** Why a side cannot be processed. */
export type Failure =
  | { readonly code: "timeout" | "ended" | "unexpected" }
  /** `why`: what the call or the decoder says. */
  | { readonly code: "call" | "unreadable"; readonly why: string }
  | { readonly code: "bodyTooLong"; readonly limit: number };

/** The error of promises about the service. */
export class ProcessingFailed extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.code);
    this.failure = failure;
  }
}

function failureText(side: Direction, failure: Failure): string {
  switch (failure.code) {
    case "timeout":
      return `the service sent nothing about the ${side} in time`;
    case "ended":
      return `the service ended the call without a message about the ${side}`;
    case "unexpected":
      return `the service sent an unexpected message about the ${side}`;
    case "unreadable":
      return `the service sent an unreadable message about the ${side}: ${failure.why}`;
    case "call":
      return `the ${side} could not be sent to the service: ${failure.why}`;
    case "bodyTooLong":
      return `the ${side} body is longer than ${failure.limit} bytes (maxBufferSize), so the service cannot get all of it`;
  }
}

type ExtProcDecision =
  | { readonly code: "processed"; readonly side: Direction }
  | { readonly code: "immediate"; readonly side: Direction; readonly status: number }
  /** `grpcStatus`: for gRPC clients. */
  | {
      readonly code: "denied";
      readonly side: Direction;
      readonly status: number;
      readonly grpcStatus?: number | undefined;
    }
  | { readonly code: "failed"; readonly side: Direction; readonly failure: Failure; readonly continues: boolean }
  | { readonly code: "routeStays" }
  | { readonly code: "timeoutIgnored"; readonly ms: number; readonly max: number }
  | { readonly code: "timeoutExtended"; readonly ms: number; readonly part: ExchangePart }
  | InvalidTarget;

export const decisions = new Decisions<ExtProcDecision>("ext_proc", {
  processed: ({ side }) => applied(`the service has processed the ${side}`, { side }),
  immediate: ({ side, status }) => {
    const responds = side === "request" ? "responds to the request itself," : "replaces the response with its own,";
    return applied(`the service ${responds} with status ${status}`, { side, immediate: status });
  },
  denied: ({ side, status, grpcStatus }) =>
    rejected(
      `the service denies the ${side} with ${grpcStatus === undefined ? `status ${status}` : grpcEndText(grpcStatus)}`,
      { side, immediate: status },
    ),
  failed: ({ side, failure, continues }) => {
    const error = failureText(side, failure);
    const data = { side, error };
    return continues ? failed(`${error}; failOpen continues without it`, data) : rejected(error, data);
  },
  routeStays: () =>
    unable(
      "the service wants another route (clear_route_cache), but the route has been chosen; attach the policy to the gateway instead",
    ),
  timeoutIgnored: ({ ms, max }) =>
    unable(`the new timeout of ${ms}ms is ignored; allowed once for each message, from 1ms to ${max}ms`),
  timeoutExtended: ({ part, ms }) => {
    // Traces name the part as the wire does.
    const wire = part.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`);
    return applied(`the service extends the timeout of ${wire} to ${ms}ms`, { part: wire, timeout: ms });
  },
  invalidTarget,
});

/** How far a service may extend the timeout of one response, as a multiple of the configured one (Envoy: `max_message_timeout`). */
const MAX_EXTENSION = 10;

/** Receives the responses about one part. `onFailure` is the last call. */
export interface Listener {
  /** Also called with an `immediateResponse`, which ends the exchange. */
  onResponse(response: ProcessingResponse): void;
  onFailure(failure: Failure): void;
  /** The stream has room again after `send` returned false. */
  onSendDrain(): void;
  /** What the service sent about this part is still on its way to a slow receiver, so no more is wanted. */
  readonly congested: boolean;
}

/** The call to the service for one exchange. The first message opens it; the end of the exchange cancels it. */
export class Session {
  readonly #callout: Callout<CalloutContext>;
  readonly #process: typeof ProcessMethod;
  readonly #context: PolicyContext;
  readonly #timeoutMs: number;
  /** For stages that end the exchange. */
  readonly owner: StageOwner;
  readonly #listeners = new Map<ExchangePart, Listener>();
  #stream: GrpcStream | undefined;
  /** Messages from before the stream is open, while the credentials of the call are fetched. */
  #waiting: Uint8Array[] | undefined;
  readonly #timers = new Map<ExchangePart, NodeJS.Timeout>();
  /** Parts whose timeout the service has extended: once for each message. */
  readonly #extended = new Set<ExchangePart>();
  /** The service is held back by flow control of HTTP/2. */
  #paused = false;
  #closed = false;
  #failure: Failure | undefined;
  /** An immediate response that arrived while no part waited for one, such as directly after a response: the next part gets it. */
  #immediate: ProcessingResponse | undefined;
  /** The service ended the stream with OK: the rest of the exchange continues without it. */
  skipped = false;
  /** The service has received part of a body, so after a failure the rest must not pass as if it were the whole. */
  consumed = false;
  /** The service has sent an unreadable message, which may have been an immediate response. */
  unreadable = false;

  /** `timeoutMs`: milliseconds for each response. */
  constructor(
    callout: Callout<CalloutContext>,
    process: typeof ProcessMethod,
    context: PolicyContext,
    timeoutMs: number,
    phase: Phase,
  ) {
    this.#callout = callout;
    this.#process = process;
    this.#context = context;
    this.#timeoutMs = timeoutMs;
    this.owner = { policy: "extProc", phase };
    context.onClose(() => this.close());
  }

  /** Sends a message. False = wait for `onSendDrain` before the next one. */
  send(message: ProcessingRequest): boolean {
    if (this.#closed) return true;
    const bytes = this.#process.encode(message);
    if (this.#stream !== undefined) return this.#stream.write(bytes);
    if (this.#waiting === undefined) {
      this.#waiting = [];
      this.#open();
    }
    this.#waiting.push(bytes);
    return false;
  }

  /** The receiver is slow, not the service: no timeout until `startTimeout`. */
  stopTimeout(part: ExchangePart): void {
    clearTimeout(this.#timers.get(part));
    this.#timers.delete(part);
  }

  /** Starts the timeout for a response about `part`, or restarts it. */
  startTimeout(part: ExchangePart): void {
    this.#extended.delete(part);
    this.#setTimeout(part, this.#timeoutMs);
  }

  #setTimeout(part: ExchangePart, ms: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timers.get(part));
    this.#timers.set(
      part,
      setTimeout(() => this.#fail({ code: "timeout" }), ms),
    );
  }

  /**
   * Restarts the oldest timeout with the duration of `override_message_timeout`. Limited as in Envoy: a service must not keep
   * clients waiting without limit.
   */
  #extend({ seconds, nanos }: Duration): void {
    const { trace } = this.#context;
    const [part] = this.#timers.keys();
    const ms = Number(seconds) * 1000 + nanos / 1_000_000;
    const max = MAX_EXTENSION * this.#timeoutMs;
    if (part === undefined || this.#extended.has(part) || !(ms >= 1 && ms <= max)) {
      trace?.report(decisions, { code: "timeoutIgnored", ms, max });
      return;
    }
    this.#extended.add(part);
    this.#setTimeout(part, ms);
    trace?.report(decisions, { code: "timeoutExtended", part, ms });
  }

  /** Delivers responses about `part` to `listener` until `unlisten`. */
  listen(part: ExchangePart, listener: Listener): void {
    this.#listeners.set(part, listener);
    this.updateFlow();
  }

  unlisten(part: ExchangePart): void {
    this.stopTimeout(part);
    this.#listeners.delete(part);
    this.updateFlow();
  }

  /**
   * Holds the service back while every part that it may respond to is congested, so a slow client bounds what the gateway buffers.
   * Both sides share the stream: as long as one of them takes messages, pausing it could deadlock the exchange.
   */
  updateFlow(): void {
    const paused = this.#listeners.size > 0 && [...this.#listeners.values()].every(({ congested }) => congested);
    if (paused === this.#paused || this.#closed) return;
    this.#paused = paused;
    if (paused) this.#stream?.pause();
    else this.#stream?.resume();
  }

  /** Sends a message and resolves with the response to it. `timed`: starts the timeout. Rejects with ProcessingFailed. */
  roundTrip(part: ExchangePart, message: ProcessingRequest, timed = true): Promise<ProcessingResponse> {
    if (this.#immediate !== undefined) return Promise.resolve(this.#immediate);
    if (this.#failure !== undefined) return Promise.reject(new ProcessingFailed(this.#failure));
    return new Promise((resolve, reject) => {
      const done = (): void => this.unlisten(part);
      this.listen(part, {
        onResponse: (response) => {
          done();
          resolve(response);
        },
        onFailure: (failure) => {
          done();
          reject(new ProcessingFailed(failure));
        },
        onSendDrain() {},
        congested: false,
      });
      if (timed) this.startTimeout(part);
      this.send(message);
    });
  }

  /** The immediate response that no part has waited for; it ends the exchange. */
  get immediate(): ImmediateResponse | undefined {
    const response = this.#immediate?.response;
    return response?.case === "immediateResponse" ? response.value : undefined;
  }

  // ── decisions ──

  /**
   * What an immediate response to one side means for this client: an error if it denies, otherwise a reply. gRPC clients get the gRPC
   * status in the message, or one derived from the HTTP status. A response below 400 without a gRPC status denies nothing and passes
   * unchanged. A status out of range becomes 200, the default of Envoy's `ImmediateResponse`.
   */
  answer(side: Direction, { status: given, headers, body, grpcStatus }: ImmediateResponse): GatewayError | LocalReply {
    const { request, trace } = this.#context;
    const code = given?.code ?? 0;
    const status = code >= 200 && code <= 599 ? code : 200;
    const own = {
      status,
      headers: replyHeaders(headerEdits(headers?.setHeaders, "add", NO_PSEUDO)),
      body,
      reason: "ExtProc",
    } as const;
    const reply =
      grpcStatus === undefined && status < 400
        ? own
        : rejectionReply(request, own, "TG_EXT_PROC_DENIED", grpcStatus?.status);
    const ended = isGrpc(reply.headers) ? grpcStatusIn(reply.headers) : undefined;
    if (ended === undefined ? reply.status >= 400 : ended !== 0)
      return decisions.reject(trace, { code: "denied", side, status, grpcStatus: ended }, "TG_EXT_PROC_DENIED", reply);
    trace?.report(decisions, { code: "immediate", side, status });
    return reply;
  }

  /** What a failure on one side means for the exchange: the error that ends it, or undefined if it continues without the service. */
  failed(side: Direction, failure: Failure, failOpen: boolean): GatewayError | undefined {
    const { trace } = this.#context;
    // A client can choose to send too much, so failOpen must not excuse it. Once the service has part of a body, the rest alone would be
    // a corrupt message.
    const byClient = side === "request" && failure.code === "bodyTooLong";
    const continues = failOpen && !byClient && !this.consumed && !this.unreadable;
    const decision = { code: "failed", side, failure, continues } as const;
    if (!continues) return decisions.reject(trace, decision, byClient ? "TG_BODY_TOO_LARGE" : "TG_EXT_PROC");
    trace?.report(decisions, decision);
    return undefined;
  }

  // ── the call ──

  /** Cancels the stream without notifying listeners. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#stream?.cancel();
  }

  #open(): void {
    this.#callout
      .stream(
        this.#process.path,
        {
          onMessage: (message) => this.#receive(message),
          onDrain: () => this.#drain(),
          onEnd: (error) => {
            // Ending the stream while no response is due is how a service says that it does not want the rest.
            if (error === undefined && this.#listeners.size === 0) this.skipped = true;
            if (isUnreadable(error)) this.unreadable = true;
            this.#fail(error === undefined ? { code: "ended" } : { code: "call", why: reasonOf(error) });
          },
        },
        this.#timeoutMs,
        callFor(this.#context, "ext_proc"),
      )
      .then(
        (stream) => {
          if (this.#closed) {
            stream.cancel();
            return;
          }
          this.#stream = stream;
          if (this.#paused) stream.pause();
          let takesMore = true;
          for (const message of this.#waiting ?? []) takesMore = stream.write(message);
          this.#waiting = undefined;
          if (takesMore) this.#drain();
        },
        (error: unknown) => this.#fail({ code: "call", why: reasonOf(error) }),
      );
  }

  /** Wakes every body that waits for room. */
  #drain(): void {
    for (const listener of this.#listeners.values()) listener.onSendDrain();
  }

  /** Decodes a message and delivers it. A message about a part that nothing waits for breaks the protocol. */
  #receive(message: Uint8Array): void {
    if (this.#closed) return;
    let answer: ProcessingResponse;
    try {
      answer = this.#process.decode(message);
    } catch (error) {
      this.unreadable = true;
      this.#fail({ code: "unreadable", why: reasonOf(error) });
      return;
    }
    const { case: answered } = answer.response;
    const immediate = answered === "immediateResponse";
    // Such a message carries no ordinary response (Envoy's `ProcessingResponse`), but an immediate response in it must not be lost.
    if (answer.overrideMessageTimeout !== undefined && !immediate) {
      this.#extend(answer.overrideMessageTimeout);
      return;
    }
    if (answer.dynamicMetadata !== undefined)
      this.#context.requestMetadata.extproc = {
        ...(this.#context.requestMetadata.extproc as object | undefined),
        ...answer.dynamicMetadata,
      };
    // An immediate response is about the exchange, not a part: any listener can end it.
    const part = immediate ? [...this.#listeners.keys()][0] : answered;
    const listener = part === undefined ? undefined : this.#listeners.get(part);
    if (listener !== undefined) listener.onResponse(answer);
    else if (immediate) {
      this.#immediate = answer;
      this.close();
    } else this.#fail({ code: "unexpected" });
  }

  /** Fails the stream once: cancels it, and notifies every listener. */
  #fail(failure: Failure): void {
    if (this.#closed) return;
    const listeners = [...this.#listeners.values()];
    this.close();
    this.#failure = failure;
    for (const listener of listeners) listener.onFailure(failure);
  }
}
