/**
 * Body stages of processing services. `StreamedBody` streams the body to the service and the service's body on, `PrefixStage`
 * replaces a buffered beginning, `TrailerStage` sends only the trailers. `processSide` chooses by the modes.
 */
import type { BodyResponse, HeaderMutation } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { applyHeaderEdits, NO_PSEUDO } from "../contract/header-edits.ts";
import type { BodySink, BodyStage } from "../contract/types.ts";
import { headerEdits, headerMap, headerRemovals } from "../envoy/convert.ts";
import {
  type Direction,
  type Failure,
  type Listener,
  ProcessingFailed,
  type ProcessingRequest,
  type ProcessingResponse,
  type Session,
} from "./session.ts";

/** Settings of the stages that send messages. */
interface StageSettings {
  readonly direction: Direction;
  /** Lets the body pass if the service fails before it has received any part of one. */
  readonly failOpen: boolean;
  /** Metadata and attributes, if this stage sends the first message of the side. */
  readonly context: ProcessingRequest;
}

/**
 * A body in full-duplex mode (Envoy's FULL_DUPLEX_STREAMED): its chunks are streamed to the service, which streams back another
 * body at its own pace. The two are unrelated in size and timing.
 */
export class StreamedBody implements BodyStage, Listener {
  readonly #session: Session;
  readonly #sink: BodySink;
  readonly #direction: Direction;
  readonly #sendTrailers: boolean;
  readonly #failOpen: boolean;
  #context: ProcessingRequest;
  #state: "streaming" | "bypassed" | "closed" = "streaming";
  congested = false;
  /** The incoming body is complete; the service's may not be. */
  #ended = false;
  #trailers: HeaderList = [];

  constructor(session: Session, sink: BodySink, settings: StageSettings, sendTrailers: boolean) {
    this.#session = session;
    this.#sink = sink;
    this.#direction = settings.direction;
    this.#failOpen = settings.failOpen;
    this.#context = settings.context;
    this.#sendTrailers = sendTrailers;
    for (const part of this.#parts()) session.listen(part, this);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#state === "bypassed") return this.#sink.write(bytes);
    if (this.#state !== "streaming") return true;
    // From here on, the body can no longer bypass the service: these bytes are no longer held.
    this.#session.consumed = true;
    return this.#send({ case: `${this.#direction}Body`, value: { body: bytes } });
  }

  end(trailers: HeaderList): void {
    this.#ended = true;
    this.#trailers = trailers;
    if (this.#state === "bypassed") this.#sink.end(trailers);
    if (this.#state !== "streaming") return;
    // While the body streams, the service may be waiting for its sender. From here on, only the service can be slow.
    if (!this.congested) this.#session.startTimeout(`${this.#direction}Body`);
    if (trailers.length > 0 && this.#sendTrailers)
      this.#send({ case: `${this.#direction}Trailers`, value: { trailers: headerMap(trailers) } });
    else this.#send({ case: `${this.#direction}Body`, value: { endOfStream: true } });
  }

  onResponse({ response }: ProcessingResponse): void {
    if (response.case === "immediateResponse") {
      this.#close();
      this.#session.close();
      this.#sink.breakOff(this.#session.answer(this.#direction, response.value), this.#session.owner);
      return;
    }
    const [body, trailers] = this.#parts();
    if (this.#ended && !this.congested) this.#session.startTimeout(body);
    if (response.case === trailers) {
      editTrailers(this.#trailers, response.value.headerMutation);
      this.#close();
      this.#sink.end(this.#trailers);
    } else if (response.case === body) this.#onBody(response.value);
  }

  onFailure(failure: Failure): void {
    this.#close();
    const error = this.#session.failed(this.#direction, failure, this.#failOpen);
    if (error !== undefined) {
      this.#sink.breakOff(error, this.#session.owner);
      return;
    }
    this.#state = "bypassed";
    this.#sink.resume();
    if (this.#ended) this.#sink.end(this.#trailers);
  }

  onSendDrain(): void {
    this.#sink.resume();
  }

  onDrain(): void {
    if (this.#state === "bypassed") this.#sink.resume();
    if (!this.congested) return;
    this.congested = false;
    if (this.#state !== "streaming") return;
    if (this.#ended) this.#session.startTimeout(`${this.#direction}Body`);
    this.#session.updateFlow();
  }

  /** Passes on bytes of the service's body. While the sink is slow, the service has to wait, and no timeout runs for it. */
  #forward(bytes: Uint8Array): void {
    if (this.#sink.write(bytes) || this.congested) return;
    this.congested = true;
    this.#session.stopTimeout(`${this.#direction}Body`);
    this.#session.updateFlow();
  }

  /** A chunk of the service's body. Only `streamedResponse` can mark the last one. */
  #onBody({ response }: BodyResponse): void {
    const { mutation } = response?.bodyMutation ?? {};
    if (mutation?.case === "body") this.#forward(mutation.value);
    if (mutation?.case !== "streamedResponse") return;
    const { body, endOfStream } = mutation.value;
    this.#forward(body);
    if (!endOfStream) return;
    this.#close();
    this.#sink.end(this.#trailers);
  }

  #send(request: NonNullable<ProcessingRequest["request"]>): boolean {
    const context = this.#context;
    this.#context = {};
    return this.#session.send({ ...context, request });
  }

  #close(): void {
    this.#state = "closed";
    for (const part of this.#parts()) this.#session.unlisten(part);
  }

  #parts() {
    return [`${this.#direction}Body`, `${this.#direction}Trailers`] as const;
  }
}

/** Sends the trailers to the service, which may change them; the body itself flows past. */
export class TrailerStage implements BodyStage {
  readonly #session: Session;
  readonly #sink: BodySink;
  readonly #settings: StageSettings;

  constructor(session: Session, sink: BodySink, settings: StageSettings) {
    this.#session = session;
    this.#sink = sink;
    this.#settings = settings;
  }

  write(bytes: Uint8Array): boolean {
    return this.#sink.write(bytes);
  }

  onDrain(): void {
    this.#sink.resume();
  }

  end(trailers: HeaderList): void {
    if (trailers.length === 0 || this.#session.skipped) this.#sink.end(trailers);
    else this.#process(trailers);
  }

  #process(trailers: HeaderList): void {
    const { direction, context, failOpen } = this.#settings;
    const part = `${direction}Trailers` as const;
    const request = { case: part, value: { trailers: headerMap(trailers) } };
    this.#session.roundTrip(part, { ...context, request }).then(
      ({ response }) => {
        if (response.case === "immediateResponse") {
          this.#session.close();
          this.#sink.breakOff(this.#session.answer(direction, response.value), this.#session.owner);
          return;
        }
        if (response.case === part) editTrailers(trailers, response.value.headerMutation);
        this.#sink.end(trailers);
      },
      (thrown: unknown) => {
        if (!(thrown instanceof ProcessingFailed)) throw thrown;
        const error = this.#session.failed(direction, thrown.failure, failOpen);
        if (error === undefined) this.#sink.end(trailers);
        else this.#sink.breakOff(error, this.#session.owner);
      },
    );
  }
}

/** Replaces the first `length` bytes of a body; the rest follows unchanged. */
export class PrefixStage implements BodyStage {
  readonly #sink: BodySink;
  /** Bytes of the original beginning that are yet to be dropped. */
  #left: number;

  constructor(sink: BodySink, length: number, replacement: Uint8Array) {
    this.#sink = sink;
    this.#left = length;
    sink.write(replacement);
  }

  write(bytes: Uint8Array): boolean {
    const dropped = Math.min(this.#left, bytes.length);
    this.#left -= dropped;
    return this.#sink.write(bytes.subarray(dropped));
  }

  onDrain(): void {
    this.#sink.resume();
  }

  end(trailers: HeaderList): void {
    this.#sink.end(trailers);
  }
}

/** Applies the service's changes to trailers. */
function editTrailers(trailers: HeaderList, mutation: HeaderMutation | undefined): void {
  const edits = [...headerRemovals(mutation?.removeHeaders), ...headerEdits(mutation?.setHeaders, "set", NO_PSEUDO)];
  applyHeaderEdits(edits, trailers);
}
