import { MAX_STREAM_ID } from "./frames.ts";
import { IdMap } from "./id-map.ts";
import type { Role } from "./settings.ts";
import type { Http2Stream } from "./stream.ts";

/** Streams that we have reset and whose peer may not know it yet. */
const REMEMBERED_RESETS = 1000;

/** The streams of one connection, and what their ids say of those that are not open (RFC 9113 5.1, 5.1.1). */
export class StreamTable {
  readonly #role: Role;
  readonly #open = new IdMap<Http2Stream>();
  #resets: Set<number> | undefined;
  /** Of the next stream that we open. */
  #next = 1;
  /** The newest stream that the peer has opened, 0 = none. */
  lastOfPeer = 0;
  /** Streams of the peer above it are not taken any more, after the last GOAWAY. */
  #acceptedUpTo = MAX_STREAM_ID;

  constructor(role: Role) {
    this.#role = role;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: number): Http2Stream | undefined {
    return this.#open.get(id);
  }

  /** Those that are open, also while they leave. */
  all(): Http2Stream[] {
    return this.#open.values();
  }

  add(stream: Http2Stream): void {
    this.#open.set(stream);
  }

  delete(stream: Http2Stream): boolean {
    return this.#open.delete(stream.id);
  }

  /** The id of a new stream of ours; undefined when none is left. */
  nextId(): number | undefined {
    const id = this.#next;
    if (id > MAX_STREAM_ID) return undefined;
    this.#next += 2;
    return id;
  }

  /** From now on, no more streams of the peer. */
  close(): void {
    this.#acceptedUpTo = this.lastOfPeer;
  }

  /** The peer opened the stream after `close`, and may not have known of it: everything about it is ignored. */
  isLate(id: number): boolean {
    return id > this.#acceptedUpTo;
  }

  /** Nothing has opened the stream so far. */
  isIdle(id: number): boolean {
    const ofPeer = (id % 2 === 1) === (this.#role === "server");
    if (ofPeer) return id > this.lastOfPeer && !this.isLate(id);
    return id >= this.#next || id % 2 === 0;
  }

  /** We have reset the stream. What still comes for it is no error. */
  remember(id: number): void {
    this.#resets ??= new Set();
    this.#resets.add(id);
    if (this.#resets.size <= REMEMBERED_RESETS) return;
    for (const oldest of this.#resets) {
      this.#resets.delete(oldest);
      return;
    }
  }

  /** What comes for the stream, which is not open, is ignored. */
  ignores(id: number): boolean {
    return this.isLate(id) || this.#resets?.has(id) === true;
  }

  /**
   * The peer never heard of the streams whose heads were written at `writes` of the writer, as they have not left: they can be
   * opened elsewhere. Returns whether there are any.
   */
  refuseUnsent(writes: number): boolean {
    let any = false;
    for (const stream of this.all()) {
      if (stream.openedAt !== writes) continue;
      stream.refused = true;
      any = true;
    }
    return any;
  }
}
