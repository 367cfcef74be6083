import type { GatewayError } from "../../base/errors.ts";
import type { HeaderList } from "../../http/message.ts";
import type { Question } from "../envoy/ext-proc.ts";
import { headerMap } from "../envoy/headers.ts";
import type { BodySink, BodyStage } from "../types.ts";
import { editTrailers } from "./edit-trailers.ts";
import type { Session } from "./session.ts";

/** Shows the service the trailers of a body, which itself flows past; the service may change them. */
export class TrailerStage implements BodyStage {
  readonly #session: Session;
  readonly #sink: BodySink;
  readonly #direction: "request" | "response";
  readonly #context: Question;
  readonly #failOpen: boolean;

  /** `context` goes with the question. */
  constructor(
    session: Session,
    sink: BodySink,
    direction: "request" | "response",
    context: Question,
    failOpen: boolean,
  ) {
    this.#session = session;
    this.#sink = sink;
    this.#direction = direction;
    this.#context = context;
    this.#failOpen = failOpen;
  }

  write(bytes: Uint8Array): boolean {
    this.#sink.write(bytes);
    return true;
  }

  end(trailers: HeaderList): void {
    if (trailers.length === 0 || this.#session.skipped) this.#sink.end(trailers);
    else this.#ask(trailers);
  }

  #ask(trailers: HeaderList): void {
    const part = `${this.#direction}_trailers` as const;
    this.#session.ask(part, { ...this.#context, [part]: { trailers: headerMap(trailers) } }).then(
      ({ immediate_response, [part]: answer }) => {
        if (immediate_response === undefined) {
          editTrailers(trailers, answer?.header_mutation);
          this.#sink.end(trailers);
          return;
        }
        this.#session.close();
        this.#sink.breakOff(this.#session.reply(immediate_response));
      },
      (error: GatewayError) => {
        if (this.#failOpen && !this.#session.consumed) this.#sink.end(trailers);
        else this.#sink.breakOff(error);
      },
    );
  }
}
