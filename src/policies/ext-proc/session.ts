import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../../base/errors.ts";
import type {
  ImmediateResponse,
  ProcessingRequestSchema,
  ProcessingResponse,
} from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { LocalReply } from "../../http/message.ts";
import { type Callout, reasonOf } from "../../upstream/callout.ts";
import type { GrpcStream } from "../../upstream/grpc/call.ts";
import { callFor } from "../calls/call-for.ts";
import type { process as ProcessMethod } from "../envoy/methods.ts";
import type { CalloutContext, PolicyContext } from "../types.ts";
import { immediateReply } from "./immediate.ts";

/** Kind in traces. */
export const TRACED = "ext_proc";

/** What the gateway sends the service, and what comes back. */
export type Question = Extract<MessageInitShape<typeof ProcessingRequestSchema>, { readonly $typeName?: never }>;
export type Answer = ProcessingResponse;

/** The parts of an exchange that the service is asked about, as its answers name them. */
export type Part = Exclude<NonNullable<Answer["response"]["case"]>, "immediateResponse">;

/** How far a service may stretch the time for one answer, as a multiple of the configured one. */
const MAX_STRETCH = 10;

/** Who waits for answers. */
export interface Listener {
  /** `immediateResponse` comes here too. */
  onAnswer(answer: Answer): void;
  onFailure(error: GatewayError): void;
  /** The service takes messages again. */
  onDrain(): void;
}

/** The call to the service for one exchange. It begins with the first message, and is cancelled when the exchange is over. */
export class Session {
  readonly #callout: Callout<CalloutContext>;
  readonly #process: typeof ProcessMethod;
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

  /** `timeoutMs` for each answer. */
  constructor(
    callout: Callout<CalloutContext>,
    process: typeof ProcessMethod,
    context: PolicyContext,
    timeoutMs: number,
  ) {
    this.#callout = callout;
    this.#process = process;
    this.#context = context;
    this.#timeoutMs = timeoutMs;
    context.onClose(() => this.close());
  }

  /** False = wait for `onDrain`. */
  send(question: Question): boolean {
    if (this.#closed) return true;
    const bytes = this.#process.encode(question);
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
  #stretch({ seconds, nanos }: Duration): void {
    const { trace } = this.#context;
    const [part] = this.#timers.keys();
    const ms = Number(seconds) * 1000 + nanos / 1_000_000;
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
    // As the message on the wire is called.
    trace?.applied(TRACED, { part: part.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`), timeout: ms });
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
  reply(immediate: ImmediateResponse): LocalReply {
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
        this.#process.path,
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
      answer = this.#process.decode(message);
    } catch (error) {
      this.#fail("an answer is no message of the protocol", reasonOf(error));
      return;
    }
    // Such a message says nothing else.
    if (answer.overrideMessageTimeout !== undefined) {
      this.#stretch(answer.overrideMessageTimeout);
      return;
    }
    if (answer.dynamicMetadata !== undefined)
      this.#context.requestMetadata.extproc = {
        ...(this.#context.requestMetadata.extproc as object | undefined),
        ...answer.dynamicMetadata,
      };
    const { case: answered } = answer.response;
    const immediate = answered === "immediateResponse";
    // Whoever has waited longest gets the answer that ends the exchange.
    const part = immediate ? [...this.#listeners.keys()][0] : answered;
    const listener = part === undefined ? undefined : this.#listeners.get(part);
    if (listener !== undefined) listener.onAnswer(answer);
    else if (!immediate) this.#fail("an answer to nothing that was asked");
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
