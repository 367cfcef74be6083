import { MAX_STREAM_ID } from "./frames.ts";
import { IdMap } from "./id-map.ts";
import type { Priority } from "./priority.ts";
import type { Role } from "./settings.ts";
import type { Http2Stream } from "./stream.ts";

/** How many of the streams that we have reset are remembered, because the peer may not know yet. */
const REMEMBERED_RESETS = 1000;

/** The open streams of one connection, and the state of all others, which follows from their ids (RFC 9113 5.1, 5.1.1). */
export class StreamTable {
  readonly #role: Role;
  readonly #open = new IdMap<Http2Stream>();
  #resets: Set<number> | undefined;
  /** Undefined until the client sends one. */
  #earlyPriorities: EarlyPriorities | undefined;
  /** Id of the next stream that we open. */
  #next = 1;
  /** The newest stream that the peer has opened, 0 = none. */
  lastOfPeer = 0;
  /** After the final GOAWAY: streams of the peer above this id are not accepted. */
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

  /** A copy of the list of open streams, so they may leave while it is iterated. */
  all(): Http2Stream[] {
    return this.#open.values();
  }

  add(stream: Http2Stream): void {
    this.#open.set(stream);
    this.#earlyPriorities?.apply(stream);
  }

  /** Keeps the priority of a stream that the peer may still open, for at most `limit` streams. */
  keepPriority(id: number, priority: Priority, limit: number): void {
    if (!this.isIdle(id)) return;
    this.#earlyPriorities ??= new EarlyPriorities();
    this.#earlyPriorities.add(id, priority, limit);
  }

  delete(stream: Http2Stream): boolean {
    return this.#open.delete(stream.id);
  }

  /** The id of our next stream; undefined if no ids are left. */
  nextId(): number | undefined {
    const id = this.#next;
    if (id > MAX_STREAM_ID) return undefined;
    this.#next += 2;
    return id;
  }

  /** Accepts no more streams of the peer from now on. */
  close(): void {
    this.#acceptedUpTo = this.lastOfPeer;
  }

  /** The peer opened the stream after `close`, perhaps before it got the GOAWAY: everything that belongs to it is ignored. */
  isLate(id: number): boolean {
    return id > this.#acceptedUpTo;
  }

  /** The stream has not been opened yet. */
  isIdle(id: number): boolean {
    const ofPeer = (id % 2 === 1) === (this.#role === "server");
    if (ofPeer) return id > this.lastOfPeer && !this.isLate(id);
    return id >= this.#next || id % 2 === 0;
  }

  /** We have reset the stream. Frames that still arrive for it are not an error. */
  remember(id: number): void {
    this.#resets ??= new Set();
    this.#resets.add(id);
    if (this.#resets.size <= REMEMBERED_RESETS) return;
    for (const oldest of this.#resets) {
      this.#resets.delete(oldest);
      return;
    }
  }

  /** Whether frames for this stream, which is not open, are ignored instead of being an error. */
  ignores(id: number): boolean {
    return this.isLate(id) || this.#resets?.has(id) === true;
  }

  /**
   * Marks the streams whose heads were written at `writes` of the writer as refused: they have not left, so the peer never received
   * them, and they can be opened elsewhere. Returns whether there are any.
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

interface EarlyPriority {
  readonly id: number;
  readonly priority: Priority;
}

/** Priorities that PRIORITY_UPDATE has set for streams that the client has not opened yet (RFC 9218 7.1). */
class EarlyPriorities {
  #kept: readonly EarlyPriority[] = [];

  /** The last frame for a stream wins. Keeps at most `limit` priorities: as many as streams may be open at once. */
  add(id: number, priority: Priority, limit: number): void {
    const others = this.#kept.filter((each) => each.id !== id);
    if (others.length < limit) this.#kept = [...others, { id, priority }];
  }

  /** The client has opened the stream: unopened streams with lower ids are closed now (RFC 9113 5.1.1). */
  apply(stream: Http2Stream): void {
    if (this.#kept.length === 0) return;
    const early = this.#kept.find(({ id }) => id === stream.id)?.priority;
    this.#kept = this.#kept.filter(({ id }) => id > stream.id);
    if (early === undefined) return;
    stream.setPriority(early.urgency, early.incremental);
    stream.prioritized = true;
  }
}
