/** A stream with data to send. */
export interface Sender {
  /** RFC 9218 4.1: 0 goes first, 7 last. */
  readonly urgency: number;
  /** RFC 9218 4.2: shares turns with others of its urgency; the rest is sent one after the other. */
  readonly incremental: boolean;
  /** It is in the queue. */
  queued: boolean;
}

/**
 * The streams of one connection that have data and a window for it, while the connection's own window or the socket does not
 * take it all. More urgent streams go first; those of the same urgency take turns, except that a stream which is not incremental
 * keeps its turn.
 */
export class SendQueue<S extends Sender> {
  /** By urgency; made with the first stream of that urgency. */
  readonly #levels: (S[] | undefined)[] = new Array(8);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Nothing if it is in the queue. `again`: it has just had its turn. */
  add(stream: S, again = false): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#size++;
    let level = this.#levels[stream.urgency];
    if (level === undefined) {
      level = [];
      this.#levels[stream.urgency] = level;
    }
    if (again && !stream.incremental) level.unshift(stream);
    else level.push(stream);
  }

  /** The stream whose turn it is; it leaves the queue. */
  take(): S | undefined {
    if (this.#size === 0) return undefined;
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
