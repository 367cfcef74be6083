/**
 * The stages that a body flows through while a processing service reads it: `StreamedBody` sends it to the service piece by
 * piece, `PrefixStage` puts the service's bytes in the place of a buffered beginning, `TrailerStage` shows it the trailers only.
 * `processSide` chooses among them by the modes.
 */
import type { GatewayError } from "../../base/errors.ts";
import type { BodyResponse, HeaderMutation } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message.ts";
import { headerEdits, headerMap, headerRemovals } from "../envoy/convert.ts";
import { applyHeaderEdits } from "../shared/header-edits.ts";
import type { BodySink, BodyStage } from "../types.ts";
import type { Listener, ProcessingRequest, ProcessingResponse, Session } from "./session.ts";

/** What stages that send messages have in common. */
interface StageSettings {
  readonly direction: "request" | "response";
  /** A failure before the service has taken bytes of the body lets the body pass. */
  readonly failOpen: boolean;
  /** Metadata and attributes, which go with the first message. */
  readonly context: ProcessingRequest;
}

/**
 * A body in full-duplex mode: the service receives it piece by piece and sends another one, at its own pace (Envoy's
 * FULL_DUPLEX_STREAMED).
 */
export class StreamedBody implements BodyStage, Listener {
  readonly #session: Session;
  readonly #sink: BodySink;
  readonly #direction: StageSettings["direction"];
  readonly #sendTrailers: boolean;
  readonly #failOpen: boolean;
  #context: ProcessingRequest;
  #state: "streaming" | "bypassed" | "closed" = "streaming";
  /** The body that comes in is complete. */
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
    if (this.#state === "bypassed") this.#sink.write(bytes);
    if (this.#state !== "streaming") return true;
    // The service has these bytes now: they cannot pass unprocessed any more.
    this.#session.consumed = true;
    return this.#send({ case: `${this.#direction}Body`, value: { body: bytes } });
  }

  end(trailers: HeaderList): void {
    this.#ended = true;
    this.#trailers = trailers;
    if (this.#state === "bypassed") this.#sink.end(trailers);
    if (this.#state !== "streaming") return;
    // While the body flows a service may wait as long as its sender; from here on it may not.
    this.#session.startTimeout(`${this.#direction}Body`);
    if (trailers.length > 0 && this.#sendTrailers)
      this.#send({ case: `${this.#direction}Trailers`, value: { trailers: headerMap(trailers) } });
    else this.#send({ case: `${this.#direction}Body`, value: { endOfStream: true } });
  }

  onResponse({ response }: ProcessingResponse): void {
    if (response.case === "immediateResponse") {
      this.#close();
      this.#session.close();
      this.#sink.breakOff(this.#session.reply(response.value));
      return;
    }
    const [body, trailers] = this.#parts();
    if (this.#ended) this.#session.startTimeout(body);
    if (response.case === trailers) {
      editTrailers(this.#trailers, response.value.headerMutation);
      this.#close();
      this.#sink.end(this.#trailers);
    } else if (response.case === body) this.#onBody(response.value);
  }

  onFailure(error: GatewayError): void {
    this.#close();
    if (!this.#failOpen || this.#session.consumed) {
      this.#sink.breakOff(error);
      return;
    }
    this.#state = "bypassed";
    this.#sink.resume();
    if (this.#ended) this.#sink.end(this.#trailers);
  }

  onDrain(): void {
    this.#sink.resume();
  }

  /** A piece of the other body. Only `streamedResponse` can say that it was the last. */
  #onBody({ response }: BodyResponse): void {
    const { mutation } = response?.bodyMutation ?? {};
    if (mutation?.case === "body") this.#sink.write(mutation.value);
    if (mutation?.case !== "streamedResponse") return;
    const { body, endOfStream } = mutation.value;
    this.#sink.write(body);
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

/** Sends the service the trailers of a body, which itself flows past; the service may change them. */
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
    this.#sink.write(bytes);
    return true;
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
          this.#sink.breakOff(this.#session.reply(response.value));
          return;
        }
        if (response.case === part) editTrailers(trailers, response.value.headerMutation);
        this.#sink.end(trailers);
      },
      (error: GatewayError) => {
        if (failOpen && !this.#session.consumed) this.#sink.end(trailers);
        else this.#sink.breakOff(error);
      },
    );
  }
}

/** Puts other bytes in the place of the first `length` of a body; the rest follows unchanged. */
export class PrefixStage implements BodyStage {
  readonly #sink: BodySink;
  /** Bytes that are still to be dropped. */
  #left: number;

  constructor(sink: BodySink, length: number, replacement: Uint8Array) {
    this.#sink = sink;
    this.#left = length;
    sink.write(replacement);
  }

  write(bytes: Uint8Array): boolean {
    const dropped = Math.min(this.#left, bytes.length);
    this.#left -= dropped;
    this.#sink.write(bytes.subarray(dropped));
    return true;
  }

  end(trailers: HeaderList): void {
    this.#sink.end(trailers);
  }
}

/** Applies the service's changes to trailers; pseudo-header fields have no place in them (RFC 9113, section 8.1). */
function editTrailers(trailers: HeaderList, mutation: HeaderMutation | undefined): void {
  const edits = [...headerRemovals(mutation?.removeHeaders), ...headerEdits(mutation?.setHeaders, "set")];
  applyHeaderEdits(
    edits.filter(({ name }) => !name.startsWith(":")),
    trailers,
  );
}
