import type { HeaderList } from "../../http/message.ts";
import type { BodySink, BodyStage } from "../types.ts";

/** Puts other bytes in the place of the first `length` of a body; the rest follows as it is. */
export class PrefixStage implements BodyStage {
  readonly #sink: BodySink;
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
