/** A stream with data to send. */
export interface Sender {
  /** RFC 9218 4.1: 0 goes first, 7 last. */
  readonly urgency: number;
  /** RFC 9218 4.2: incremental streams of one urgency share turns; others are sent one after the other. */
  readonly incremental: boolean;
  /** It is in the queue. */
  queued: boolean;
}

/**
 * The streams of one connection that have data and a window for it, but have to wait for the connection's window or the socket. More
 * urgent streams go first. Streams of the same urgency take turns, except that one that is not incremental keeps its turn.
 */
export class SendQueue<S extends Sender> {
  /** By urgency; each is made with its first stream. Undefined before anything had to wait, as on most connections. */
  #levels: (S[] | undefined)[] | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Does nothing if the stream is in the queue already. `again`: it has just had its turn. */
  add(stream: S, again = false): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#size++;
    this.#levels ??= new Array(8);
    let level = this.#levels[stream.urgency];
    if (level === undefined) {
      level = [];
      this.#levels[stream.urgency] = level;
    }
    if (again && !stream.incremental) level.unshift(stream);
    else level.push(stream);
  }

  /** Does nothing if it is not in the queue. Called before its urgency changes. */
  remove(stream: S): void {
    const level = this.#levels?.[stream.urgency];
    if (!stream.queued || level === undefined) return;
    level.splice(level.indexOf(stream), 1);
    stream.queued = false;
    this.#size--;
  }

  /** The stream whose turn it is; it leaves the queue. */
  take(): S | undefined {
    if (this.#size === 0 || this.#levels === undefined) return undefined;
    for (const level of this.#levels) {
      const stream = level?.shift();
      if (stream === undefined) continue;
      this.#size--;
      stream.queued = false;
      return stream;
    }
    return undefined;
  }
}
