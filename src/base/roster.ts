/** Something that can be in one roster at a time. */
export interface Rostered {
  /** Its index, which only the roster changes; -1 = in no roster. */
  place: number;
}

/**
 * A set of objects with a note on each, for short-lived objects such as connections. It is an array in which each object knows its
 * place: a deleted object is replaced by the last one, so no reference to it remains.
 *
 * A `Map` or `Set` would keep it alive. V8 gives them a new table every few insertions, and the old table points to the new one.
 * Once such a table has reached the old generation, all later tables survive every scavenge with the objects in them, until a full
 * collection.
 */
export class Roster<Item extends Rostered, Note = undefined> {
  readonly #items: Item[] = [];
  readonly #notes: Note[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** An item that is here already only gets another note. */
  set(item: Item, note: Note): void {
    if (!this.has(item)) item.place = this.#items.push(item) - 1;
    this.#notes[item.place] = note;
  }

  has(item: Item): boolean {
    return this.#items[item.place] === item;
  }

  /** Undefined when the item is not here. */
  note(item: Item): Note | undefined {
    return this.has(item) ? this.#notes[item.place] : undefined;
  }

  /** Does nothing when the item is not here. */
  delete(item: Item): void {
    if (!this.has(item)) return;
    const [items, notes] = [this.#items, this.#notes];
    const { place } = item;
    item.place = -1;
    const last = items.pop() as Item;
    const note = notes.pop() as Note;
    if (last === item) return;
    last.place = place;
    items[place] = last;
    notes[place] = note;
  }

  /**
   * Calls `visit`, which may delete any item and add others. Every item that stays is visited at least once, and again if it takes
   * the place of one that a visit has deleted.
   */
  each(visit: (item: Item, note: Note) => void): void {
    // From the end: the item that takes the place of a deleted one has been visited already.
    for (let at = this.#items.length - 1; at >= 0; at--) {
      const item = this.#items[at];
      if (item !== undefined) visit(item, this.#notes[at] as Note);
    }
  }

  /** All items, in no order. */
  items(): Item[] {
    return [...this.#items];
  }
}
