import type { Transport } from "../../net/transport.ts";
import { END_STREAM } from "./frames.ts";

/** Bytes of a buffer: a few frames of the usual size, or the answers of many streams. */
export const OUTPUT_SIZE = 64 * 1024;
/** Unused buffers that a thread keeps. */
const MAX_SPARE = 64;

/** A buffer that goes from connection to connection: one has it while it gathers frames and until the system has taken them. */
class Chunk {
  readonly bytes = Buffer.allocUnsafeSlow(OUTPUT_SIZE);

  readonly release = (): void => {
    if (spare.length < MAX_SPARE) spare.push(this);
  };
}

const spare: Chunk[] = [];
/** Outputs with frames that this turn has gathered. */
let gathered: FrameOutput[] = [];
let scheduled = false;

function flushAll(): void {
  scheduled = false;
  const outputs = gathered;
  gathered = [];
  for (const output of outputs) output.endTurn();
}

/**
 * Gathers the frames that one connection sends, whichever streams they belong to. All connections that have sent something in a
 * turn of the event loop write once, at its end: the answers of many streams leave in one system call. (`nextTick` would run
 * after each socket's callback, so it would gather almost nothing.)
 */
export class FrameOutput {
  readonly #transport: Transport;
  #chunk: Chunk | undefined;
  #at = 0;
  #listed = false;
  /** What is gathered leaves when the system has taken what was written before. */
  #waits = false;
  /** Where the last frame begins that can still take END_STREAM, and its stream; 0 = none. */
  #lastFrame = 0;
  #lastStream = 0;
  /** The system does not take more: wait for the transport's drain. */
  congested = false;
  /** Counts writes: bytes that were gathered since the last one have not left. */
  writes = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Bytes that are gathered or that the system has not taken. */
  get backlog(): number {
    return this.#at + this.#transport.backlog;
  }

  /** A buffer with room for `length` bytes at `at`, at most OUTPUT_SIZE. What is written there counts after `advance`. */
  reserve(length: number): Buffer {
    if (this.#at + length > OUTPUT_SIZE) this.flush();
    let chunk = this.#chunk;
    if (chunk === undefined) {
      chunk = spare.pop() ?? new Chunk();
      this.#chunk = chunk;
    }
    return chunk.bytes;
  }

  /** Where the next byte goes. */
  get at(): number {
    return this.#at;
  }

  /** What was written up to `to` goes out. `stream`: of a frame at `at` that could carry END_STREAM; 0 for other frames. */
  advance(to: number, stream: number): void {
    this.#lastFrame = this.#at;
    this.#lastStream = stream;
    this.#at = to;
    if (this.#listed) return;
    this.#listed = true;
    gathered.push(this);
    if (scheduled) return;
    scheduled = true;
    setImmediate(flushAll);
  }

  /** Sets END_STREAM on the last frame. False when that is not one of this stream, or has been written already. */
  endLast(stream: number): boolean {
    const chunk = this.#chunk;
    if (chunk === undefined || this.#lastStream !== stream || this.#at === 0) return false;
    const flags = this.#lastFrame + 4;
    chunk.bytes[flags] = (chunk.bytes[flags] as number) | END_STREAM;
    this.#lastStream = 0;
    return true;
  }

  /**
   * Writes what was gathered, unless what was written before still waits: then it would only wait behind that, a buffer for each
   * turn. A peer that reads nothing and makes us send a few bytes again and again would fill the memory with buffers
   * that are almost empty.
   */
  endTurn(): void {
    this.#listed = false;
    if (this.#at === 0 || this.#transport.backlog === 0) this.flush();
    else if (!this.#waits) {
      this.#waits = true;
      this.#transport.whenTaken(() => {
        this.#waits = false;
        this.flush();
      });
    }
  }

  /** Writes what was gathered. */
  flush(): void {
    const chunk = this.#chunk;
    if (chunk === undefined) return;
    const length = this.#at;
    this.#chunk = undefined;
    this.#at = 0;
    this.#lastStream = 0;
    this.writes++;
    if (length === 0) chunk.release();
    else if (!this.#transport.send(chunk.bytes, length, chunk.release)) this.congested = true;
  }

  /** Drops what was gathered: nothing is written any more. */
  drop(): void {
    this.#chunk?.release();
    this.#chunk = undefined;
    this.#at = 0;
  }
}
