import type { GatewayError } from "../../base/errors.ts";
import type { BodyResponse } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message.ts";
import { headerMap } from "../envoy/headers.ts";
import type { BodySink, BodyStage } from "../types.ts";
import type { Answer, Listener, Question, Session } from "./session.ts";
import { editTrailers } from "./trailer-stage.ts";

/** A body that goes to the service piece by piece while the pieces of another come from it. */
export class StreamedBody implements BodyStage, Listener {
  readonly #session: Session;
  readonly #sink: BodySink;
  readonly #direction: "request" | "response";
  readonly #sendTrailers: boolean;
  readonly #failOpen: boolean;
  /** Goes with the first message. */
  #context: Question;
  #state: "streaming" | "bypassed" | "over" = "streaming";
  #ended = false;
  #trailers: HeaderList = [];

  constructor(
    session: Session,
    sink: BodySink,
    direction: "request" | "response",
    sendTrailers: boolean,
    failOpen: boolean,
    context: Question,
  ) {
    this.#context = context;
    this.#session = session;
    this.#sink = sink;
    this.#direction = direction;
    this.#sendTrailers = sendTrailers;
    this.#failOpen = failOpen;
    for (const part of this.#parts()) session.listen(part, this);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#state === "bypassed") this.#sink.write(bytes);
    if (this.#state !== "streaming") return true;
    this.#session.consumed = true;
    return this.#send({ case: `${this.#direction}Body`, value: { body: bytes } });
  }

  end(trailers: HeaderList): void {
    this.#ended = true;
    this.#trailers = trailers;
    if (this.#state === "bypassed") this.#sink.end(trailers);
    if (this.#state !== "streaming") return;
    this.#session.expect(`${this.#direction}Body`);
    if (trailers.length > 0 && this.#sendTrailers)
      this.#send({ case: `${this.#direction}Trailers`, value: { trailers: headerMap(trailers) } });
    else this.#send({ case: `${this.#direction}Body`, value: { endOfStream: true } });
  }

  #send(request: NonNullable<Question["request"]>): boolean {
    const context = this.#context;
    this.#context = {};
    return this.#session.send({ ...context, request });
  }

  onAnswer({ response }: Answer): void {
    if (response.case === "immediateResponse") {
      this.#finish();
      this.#session.close();
      this.#sink.breakOff(this.#session.reply(response.value));
      return;
    }
    const [body, trailers] = this.#parts();
    if (this.#ended) this.#session.expect(body);
    if (response.case === trailers) {
      editTrailers(this.#trailers, response.value.headerMutation);
      this.#finish();
      this.#sink.end(this.#trailers);
    } else if (response.case === body) this.#answered(response.value);
  }

  #answered({ response }: BodyResponse): void {
    const { mutation } = response?.bodyMutation ?? {};
    if (mutation?.case === "body") this.#sink.write(mutation.value);
    if (mutation?.case !== "streamedResponse") return;
    const { body, endOfStream } = mutation.value;
    this.#sink.write(body);
    if (!endOfStream) return;
    this.#finish();
    this.#sink.end(this.#trailers);
  }

  onFailure(error: GatewayError): void {
    this.#finish();
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

  #finish(): void {
    this.#state = "over";
    for (const part of this.#parts()) this.#session.unlisten(part);
  }

  #parts() {
    return [`${this.#direction}Body`, `${this.#direction}Trailers`] as const;
  }
}
