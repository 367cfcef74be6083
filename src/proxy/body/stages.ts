import type { GatewayError } from "../../base/errors.ts";
import type { HeaderList, LocalReply } from "../../http/message.ts";
import type { BodySink, BodyStage } from "../../policies/types.ts";

/** What a chain of stages works for. */
export interface StagedBody {
  /** What comes out at the end. */
  take(bytes: Buffer): void;
  finish(trailers: HeaderList): void;
  /** The source may send again. */
  resume(): void;
  breakOff(answer: GatewayError | LocalReply): void;
}

/** The stages that a body flows through, in their order. */
export class Stages {
  readonly #body: StagedBody;
  #first: BodyStage | undefined;
  #last: Sink | undefined;

  constructor(body: StagedBody) {
    this.#body = body;
  }

  get empty(): boolean {
    return this.#first === undefined;
  }

  /** Puts a stage at the end. Returns it, for what is there of the body already. */
  add(make: (sink: BodySink) => BodyStage): BodyStage {
    const sink = new Sink(this.#body);
    const stage = make(sink);
    if (this.#last === undefined) this.#first = stage;
    else this.#last.next = stage;
    this.#last = sink;
    return stage;
  }

  /** From the source. False = it has to wait. */
  write(buffer: Buffer, from: number, to: number): boolean {
    // What the engine hands over is valid during the call only.
    return this.#first?.write(Buffer.from(buffer.subarray(from, to))) ?? true;
  }

  end(trailers: HeaderList): void {
    this.#first?.end(trailers);
  }
}

class Sink implements BodySink {
  next: BodyStage | undefined;
  readonly #body: StagedBody;

  constructor(body: StagedBody) {
    this.#body = body;
  }

  write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.next !== undefined) this.next.write(bytes);
    else this.#body.take(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  }
  end(trailers: HeaderList): void {
    if (this.next !== undefined) this.next.end(trailers);
    else this.#body.finish(trailers);
  }
  resume(): void {
    this.#body.resume();
  }
  breakOff(answer: GatewayError | LocalReply): void {
    this.#body.breakOff(answer);
  }
}
