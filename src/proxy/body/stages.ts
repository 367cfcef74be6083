/** The chain of transformations that the bytes of a body pass through. */
import type { GatewayError } from "../../base/errors.ts";
import type { HeaderList, LocalReply } from "../../http/message/message.ts";
import type { BodySink, BodyStage, StageOwner } from "../../policies/contract/types.ts";

/** The body whose bytes pass through a chain of stages. */
export interface StageOutput {
  /** Bytes from the last stage. False = the destination has no room; `Stages.drained` follows. */
  take(bytes: Buffer): boolean;
  finish(trailers: HeaderList): void;
  /** The first stage accepts bytes again. */
  resume(): void;
  /** Ends the exchange in place of the body; see `BodySink`. */
  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void;
}

/** The stages of one body, in the order in which policies added them. Each writes to the next, the last to the body. */
export class Stages {
  readonly #body: StageOutput;
  #first: BodyStage | undefined;
  #lastStage: BodyStage | undefined;
  #last: Sink | undefined;

  constructor(body: StageOutput) {
    this.#body = body;
  }

  get empty(): boolean {
    return this.#first === undefined;
  }

  /** Appends a stage. Returns it, so that bytes that were held can be written to it. */
  add(make: (sink: BodySink) => BodyStage): BodyStage {
    const sink = new Sink(this.#body, this.#lastStage);
    const stage = make(sink);
    if (this.#last === undefined) this.#first = stage;
    else this.#last.next = stage;
    this.#last = sink;
    this.#lastStage = stage;
    return stage;
  }

  /** Writes bytes of the source. False = the source has to wait. */
  write(buffer: Buffer, from: number, to: number): boolean {
    // The source's bytes are valid during the call only.
    return this.#first?.write(Buffer.from(buffer.subarray(from, to))) ?? true;
  }

  end(trailers: HeaderList): void {
    this.#first?.end(trailers);
  }

  /** The destination has room: informs the last stage, whose `resume` informs the stage before it. */
  drained(): void {
    this.#lastStage?.onDrain();
  }
}

/** Where one stage writes: to the next stage, or out of the chain. */
class Sink implements BodySink {
  next: BodyStage | undefined;
  readonly #body: StageOutput;
  /** The stage that writes to the owner of this sink. */
  readonly #previous: BodyStage | undefined;

  constructor(body: StageOutput, previous: BodyStage | undefined) {
    this.#body = body;
    this.#previous = previous;
  }

  write(bytes: Uint8Array): boolean {
    if (bytes.length === 0) return true;
    if (this.next !== undefined) return this.next.write(bytes);
    return this.#body.take(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  }
  end(trailers: HeaderList): void {
    if (this.next !== undefined) this.next.end(trailers);
    else this.#body.finish(trailers);
  }
  resume(): void {
    if (this.#previous === undefined) this.#body.resume();
    else this.#previous.onDrain();
  }
  breakOff(answer: GatewayError | LocalReply, owner?: StageOwner): void {
    this.#body.breakOff(answer, owner);
  }
}
