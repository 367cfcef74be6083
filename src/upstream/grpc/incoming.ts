import { getHeader, type HeaderList } from "../../http/message/message.ts";
import { MessageReader } from "./messages.ts";
import { type GrpcStatus, STATUS, statusIn } from "./status.ts";

/** The response of a service on its way to the caller, who may pause: messages, then the status. */
export class IncomingMessages {
  readonly #onMessage: (message: Buffer) => void;
  readonly #reader = new MessageReader((message) => this.#received(message));
  /** Contains the status if the response consists of its head alone ("Trailers-Only"). */
  #head: HeaderList = [];
  /** The caller has paused, and so has the stream: nothing more is read. */
  paused = false;
  /** Messages that arrived in the same read as the one at which the caller paused. */
  readonly #held: Buffer[] = [];

  constructor(onMessage: (message: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  /** The last bytes are a part of a message, or an unreadable one. */
  get incomplete(): boolean {
    return this.#reader.incomplete;
  }

  begin(headers: HeaderList): void {
    this.#head = headers;
    this.#reader.encoding = getHeader(headers, "grpc-encoding");
  }

  /** Reads `buffer[from, to)`, which may be reused afterwards. Returns the status that ends the call, if the messages are invalid. */
  push(buffer: Buffer, from: number, to: number): GrpcStatus | undefined {
    return this.#reader.push(buffer, from, to);
  }

  /** Delivers what was held. Returns whether the stream may go on: the caller has not paused again. */
  resume(): boolean {
    this.paused = false;
    while (!this.paused) {
      const message = this.#held.shift();
      if (message === undefined) break;
      this.#onMessage(message);
    }
    return !this.paused;
  }

  /** The status is in the trailers, or in the head of a response without messages. */
  statusOf(trailers: HeaderList): GrpcStatus {
    const inHead = statusIn(this.#head);
    // Trailers cannot undo a failure in the head.
    const status = inHead !== undefined && inHead.code !== STATUS.ok ? inHead : (statusIn(trailers) ?? inHead);
    if (status === undefined)
      return { code: STATUS.unknown, message: "the service has ended the call without a status" };
    if (status.code !== STATUS.ok || !this.incomplete) return status;
    return { code: STATUS.internal, message: "the service has ended the call within a message" };
  }

  #received(message: Buffer): void {
    if (this.paused) this.#held.push(message);
    else this.#onMessage(message);
  }
}
