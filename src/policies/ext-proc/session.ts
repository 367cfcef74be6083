import { GatewayError } from "../../base/errors.ts";
import type { LocalReply } from "../../http/message.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import type { GrpcStream } from "../../upstream/grpc-channel.ts";
import { callFor } from "../calls/call-for.ts";
import {
  type Answer,
  type Immediate,
  PROCESS,
  ProcessingRequest,
  ProcessingResponse,
  type Question,
} from "../envoy/ext-proc.ts";
import type { CalloutContext, PolicyContext } from "../types.ts";
import { immediateReply } from "./immediate.ts";

/** Kind in traces. */
export const TRACED = "ext_proc";

/** The parts of an exchange that the service is asked about, as its answers name them. */
export type Part =
  | "request_headers"
  | "request_body"
  | "request_trailers"
  | "response_headers"
  | "response_body"
  | "response_trailers";

/** How far a service may stretch the time for one answer, as a multiple of the configured one. */
const MAX_STRETCH = 10;

/** Who waits for answers. */
export interface Listener {
  /** `immediate_response` comes here too. */
  onAnswer(answer: Answer): void;
  onFailure(error: GatewayError): void;
  /** The service takes messages again. */
  onDrain(): void;
}

/** The call to the service for one exchange. It begins with the first message, and is cancelled when the exchange is over. */
export class Session {
  readonly #callout: Callout<CalloutContext>;
  readonly #context: PolicyContext;
  readonly #timeoutMs: number;
  readonly #listeners = new Map<Part, Listener>();
  #stream: GrpcStream | undefined;
  /** Messages that wait for the call to be open. */
  #waiting: Uint8Array[] | undefined;
  readonly #timers = new Map<Part, NodeJS.Timeout>();
  /** Parts for whose answer the service has asked for more time. */
  readonly #stretched = new Set<Part>();
  #closed = false;
  #failure: GatewayError | undefined;
  /** The service takes no part in the exchange any more. */
  skipped = false;
  /** Bytes of a body have gone to the service, which has them now. */
  consumed = false;

  constructor(callout: Callout<CalloutContext>, context: PolicyContext, timeoutMs: number) {
    this.#callout = callout;
    this.#context = context;
    this.#timeoutMs = timeoutMs;
    context.onClose(() => this.close());
  }

  /** False = wait for `onDrain`. */
  send(question: Question): boolean {
    if (this.#closed) return true;
    const bytes = ProcessingRequest.encode(question);
    if (this.#stream !== undefined) return this.#stream.write(bytes);
    if (this.#waiting === undefined) {
      this.#waiting = [];
      this.#open();
    }
    this.#waiting.push(bytes);
    return false;
  }

  /** From now on an answer has to come within the deadline. */
  expect(part: Part): void {
    this.#stretched.delete(part);
    this.#wait(part, this.#timeoutMs);
  }

  #wait(part: Part, ms: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timers.get(part));
    this.#timers.set(
      part,
      setTimeout(() => this.#fail("no answer in time"), ms),
    );
  }

  /** Another deadline for the message that has waited longest, once for each message; it begins anew. */
  #stretch({ seconds = 0, nanos = 0 }: NonNullable<Answer["override_message_timeout"]>): void {
    const { trace } = this.#context;
    const [part] = this.#timers.keys();
    const ms = seconds * 1000 + nanos / 1_000_000;
    const max = MAX_STRETCH * this.#timeoutMs;
    if (part === undefined || this.#stretched.has(part) || !(ms >= 1 && ms <= max)) {
      trace?.skipped(
        TRACED,
        `another timeout, ${ms}ms, is not taken: once for each message, from 1ms to ${max}ms`,
        "warn",
      );
      return;
    }
    this.#stretched.add(part);
    this.#wait(part, ms);
    trace?.applied(TRACED, { part, timeout: ms });
  }

  listen(part: Part, listener: Listener): void {
    this.#listeners.set(part, listener);
  }

  unlisten(part: Part): void {
    clearTimeout(this.#timers.get(part));
    this.#timers.delete(part);
    this.#listeners.delete(part);
  }

  /** One message and the answer to it. `timed`: within the deadline from now on. */
  ask(part: Part, question: Question, timed = true): Promise<Answer> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const done = (): void => this.unlisten(part);
      this.listen(part, {
        onAnswer: (answer) => {
          done();
          resolve(answer);
        },
        onFailure: (error) => {
          done();
          reject(error);
        },
        onDrain() {},
      });
      if (timed) this.expect(part);
      this.send(question);
    });
  }

  /** What the service answers in the place of a backend. */
  reply(immediate: Immediate): LocalReply {
    return immediateReply(immediate, this.#context.request);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#stream?.cancel();
  }

  #open(): void {
    this.#callout
      .stream(
        PROCESS,
        {
          onMessage: (message) => this.#receive(message),
          onDrain: () => this.#drain(),
          onEnd: (error) => {
            // A service that ends the call while nothing is asked wants no more of this exchange.
            if (error === undefined && this.#listeners.size === 0) this.skipped = true;
            this.#fail(error === undefined ? "no more responses" : "failed to send request", error && reasonOf(error));
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
          let takesMore = true;
          for (const message of this.#waiting ?? []) takesMore = stream.write(message);
          this.#waiting = undefined;
          if (takesMore) this.#drain();
        },
        (error: unknown) => this.#fail("failed to send request", reasonOf(error)),
      );
  }

  #drain(): void {
    for (const listener of this.#listeners.values()) listener.onDrain();
  }

  #receive(message: Uint8Array): void {
    if (this.#closed) return;
    let answer: Answer;
    try {
      answer = ProcessingResponse.decode(message);
    } catch (error) {
      this.#fail("an answer is no message of the protocol", reasonOf(error));
      return;
    }
    // Such a message says nothing else.
    if (answer.override_message_timeout !== undefined) {
      this.#stretch(answer.override_message_timeout);
      return;
    }
    if (answer.dynamic_metadata !== undefined)
      this.#context.requestMetadata.extproc = {
        ...(this.#context.requestMetadata.extproc as object | undefined),
        ...answer.dynamic_metadata,
      };
    const part = [...this.#listeners.keys()].find((each) =>
      answer.immediate_response !== undefined ? true : answer[each] !== undefined,
    );
    if (part !== undefined) this.#listeners.get(part)?.onAnswer(answer);
    else if (answer.immediate_response === undefined) this.#fail("an answer to nothing that was asked");
  }

  #fail(message: string, cause?: string): void {
    if (this.#closed) return;
    const listeners = [...this.#listeners.values()];
    this.close();
    const error = new GatewayError("TG_EXT_PROC", message, cause === undefined ? undefined : new Error(cause));
    this.#failure = error;
    for (const listener of listeners) listener.onFailure(error);
  }
}
