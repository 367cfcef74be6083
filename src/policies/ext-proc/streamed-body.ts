import type { GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message.ts";
import type { Answer, Question } from "../envoy/ext-proc.ts";
import { headerMap } from "../envoy/headers.ts";
import type { BodySink, BodyStage } from "../types.ts";
import { editTrailers } from "./edit-trailers.ts";
import type { Listener, Part, Session } from "./session.ts";

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
    return this.#send({ [`${this.#direction}_body`]: { body: bytes } });
  }

  end(trailers: HeaderList): void {
    this.#ended = true;
    this.#trailers = trailers;
    if (this.#state === "bypassed") this.#sink.end(trailers);
    if (this.#state !== "streaming") return;
    this.#session.expect(`${this.#direction}_body`);
    if (trailers.length > 0 && this.#sendTrailers)
      this.#send({ [`${this.#direction}_trailers`]: { trailers: headerMap(trailers) } });
    else this.#send({ [`${this.#direction}_body`]: { end_of_stream: true } });
  }

  #send(question: Question): boolean {
    const context = this.#context;
    this.#context = {};
    return this.#session.send({ ...context, ...question });
  }

  onAnswer(answer: Answer): void {
    if (answer.immediate_response !== undefined) {
      this.#finish();
      this.#session.close();
      this.#sink.breakOff(this.#session.reply(answer.immediate_response));
      return;
    }
    if (this.#ended) this.#session.expect(`${this.#direction}_body`);
    const mutation = answer[`${this.#direction}_body`]?.response?.body_mutation;
    const streamed = mutation?.streamed_response;
    this.#sink.write(streamed?.body ?? mutation?.body ?? NO_BYTES);
    const trailers = answer[`${this.#direction}_trailers`];
    if (trailers !== undefined) editTrailers(this.#trailers, trailers.header_mutation);
    if (trailers === undefined && streamed?.end_of_stream !== true) return;
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

  #parts(): Part[] {
    return [`${this.#direction}_body`, `${this.#direction}_trailers`];
  }
}

const NO_BYTES = new Uint8Array(0);
