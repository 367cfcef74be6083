import type { GatewayError } from "../../base/errors.ts";
import type { HeaderMutation } from "../../gen/envoy/service/ext_proc/v3/external_processor_pb.ts";
import type { HeaderList } from "../../http/message.ts";
import { headerEdits, headerMap, headerRemovals } from "../envoy/headers.ts";
import { applyHeaderEdits } from "../shared/header-edits.ts";
import type { BodySink, BodyStage } from "../types.ts";
import type { Question, Session } from "./session.ts";

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
    const part = `${this.#direction}Trailers` as const;
    const request = { case: part, value: { trailers: headerMap(trailers) } };
    this.#session.ask(part, { ...this.#context, request }).then(
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
        if (this.#failOpen && !this.#session.consumed) this.#sink.end(trailers);
        else this.#sink.breakOff(error);
      },
    );
  }
}

/** Applies what the service makes of trailers; pseudo headers have no place in them (RFC 9113 8.1). */
export function editTrailers(trailers: HeaderList, mutation: HeaderMutation | undefined): void {
  const edits = [...headerRemovals(mutation?.removeHeaders), ...headerEdits(mutation?.setHeaders, "set")];
  applyHeaderEdits(
    edits.filter(({ name }) => !name.startsWith(":")),
    trailers,
  );
}
