import type { Priority } from "./priority.ts";
import type { Http2Stream } from "./stream.ts";

interface EarlyPriority {
  readonly id: number;
  readonly priority: Priority;
}

/** Priorities that PRIORITY_UPDATE has set for streams that the client has not opened yet (RFC 9218 7.1). */
export class EarlyPriorities {
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
