import type { Transport } from "../../net/transport.ts";
import { type TurnOutput, writeAtEndOfTurn } from "../../net/turn.ts";
import { END_STREAM } from "./frames.ts";

/** Bytes of a buffer: a few frames of the usual size, or the responses of many streams. */
export const OUTPUT_SIZE = 64 * 1024;
/** Unused buffers that a thread keeps. */
const MAX_SPARE = 64;

/** A pooled buffer: a connection owns it from its first gathered frame until the system has taken the bytes. */
class Chunk {
  readonly bytes = Buffer.allocUnsafeSlow(OUTPUT_SIZE);
  #filled = this.bytes;

  /** The first `length` bytes. The last view is kept: many responses are as long as the one before, and a view costs 200 bytes. */
  filled(length: number): Buffer {
    if (this.#filled.length !== length) this.#filled = this.bytes.subarray(0, length);
    return this.#filled;
  }

  readonly release = (): void => {
    if (spare.length < MAX_SPARE) spare.push(this);
  };
}

const spare: Chunk[] = [];

/**
 * Gathers the frames that all streams of one connection send. It writes once at the end of a turn of the event loop (turn.ts), so
 * the responses of many streams leave in one system call.
 */
export class FrameOutput implements TurnOutput {
  readonly #transport: Transport;
  #chunk: Chunk | undefined;
  #at = 0;
  #listed = false;
  /** What is gathered is written when the system has taken the write before it. */
  #waits = false;
  /** Start of the last frame, and its stream if it can still carry END_STREAM; stream 0 = it cannot. */
  #lastFrame = 0;
  #lastStream = 0;
  /** The socket's buffers are full: wait for the transport's drain. */
  congested = false;
  /** Counts writes: bytes gathered since the last one have not left. */
  writes = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Bytes that are gathered, or written and not yet taken by the system. */
  get backlog(): number {
    return this.#at + this.#transport.backlog;
  }

  /** A buffer with room for `length` bytes at `at`, at most OUTPUT_SIZE. `advance` makes what is written there part of the output. */
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

  /** Adds the bytes from `at` to `to`, one frame. `stream`: its stream if it can carry END_STREAM, otherwise 0. */
  advance(to: number, stream: number): void {
    this.#lastFrame = this.#at;
    this.#lastStream = stream;
    this.#at = to;
    if (this.#listed) return;
    this.#listed = true;
    writeAtEndOfTurn(this);
  }

  /** After `advance`: what was written up to `to` belongs to the same frame as far as END_STREAM goes. */
  extend(to: number): void {
    this.#at = to;
  }

  /** Sets END_STREAM on the last frame. False if that belongs to another stream, cannot carry it, or has been written already. */
  endLast(stream: number): boolean {
    const chunk = this.#chunk;
    if (chunk === undefined || this.#lastStream !== stream || this.#at === 0) return false;
    const flags = this.#lastFrame + 4;
    chunk.bytes[flags] = (chunk.bytes[flags] as number) | END_STREAM;
    this.#lastStream = 0;
    return true;
  }

  /**
   * Writes what was gathered, unless an earlier write is still waiting: this one would queue behind it, one buffer per turn. A peer that
   * reads nothing and keeps making us send a few bytes would fill the memory with almost empty buffers.
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
    else if (!this.#transport.send(chunk.filled(length), chunk.release)) this.congested = true;
  }

  /** Drops what was gathered: nothing more is written. */
  drop(): void {
    this.#chunk?.release();
    this.#chunk = undefined;
    this.#at = 0;
  }
}
