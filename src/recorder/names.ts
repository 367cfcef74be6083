import { storeInOrder } from "../base/store-in-order.ts";
import { EPOCH, fence, type RecorderMemory, USED } from "./memory.ts";

/** Bytes of one name at most; longer ones are cut. */
export const MAX_NAME = 1024;
/** Names of one record at most. */
const PER_RECORD = 8;
/** The share of the memory for names that clients choose: hosts and methods. */
const CLIENTS_SHARE = 1 / 4;
/** The length in front of each name; names are aligned to it. */
const LENGTH = 4;
/** Set in the length of a name that a client has chosen. */
const BY_CLIENT = 0x8000_0000;

/** A text of the configuration with the number that stands for it. Its owner keeps it, so that records need not look it up. */
export class Name {
  readonly text: string;
  number = 0;
  epoch = 0;

  constructor(text: string) {
    this.text = text;
  }
}

/** The text that a field had last: most records have the same one as the record before. */
export class LastName {
  text = "";
  number = 0;
  epoch = 0;
}

/**
 * The names that a worker's records refer to: texts of the configuration, such as routes and endpoints, and a bounded number that
 * clients choose. A number is the place of a text in the shared memory, so a record can be read whatever has become of its worker and of
 * the configuration.
 *
 * When a half of the memory is full, a new epoch begins in the other one, and names get new numbers. So the names of a record
 * last until all the room of a half has been taken by others.
 */
export class Names {
  readonly #memory: RecorderMemory;
  readonly #known = new Map<string, number>();
  #bytes: Buffer;
  #used = 0;
  #ofClients = 0;
  /** From 1 on. */
  #epoch: number;

  /** Continues with the names that an earlier worker has left. */
  constructor(memory: RecorderMemory) {
    this.#memory = memory;
    this.#epoch = Math.max(1, Atomics.load(memory.head, EPOCH));
    Atomics.store(memory.head, EPOCH, this.#epoch);
    this.#bytes = memory.names[half(this.#epoch)];
    const used = Atomics.load(memory.head, USED + half(this.#epoch));
    while (this.#used < used) {
      const marked = this.#bytes.readUInt32LE(this.#used);
      this.#take(textAt(this.#bytes, this.#used), marked);
    }
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Makes room for the names of one record: all have numbers of one epoch. */
  makeRoom(): void {
    if (this.#used + PER_RECORD * (LENGTH + MAX_NAME) > this.#bytes.length) this.#turn();
  }

  #turn(): void {
    const { head, names } = this.#memory;
    this.#epoch++;
    Atomics.store(head, USED + half(this.#epoch), 0);
    // A reader looks at the epoch again once it has read a name: it must see the new one if the name has changed.
    storeInOrder(head, EPOCH, this.#epoch);
    this.#bytes = names[half(this.#epoch)];
    this.#used = 0;
    this.#ofClients = 0;
    this.#known.clear();
  }

  /** The number of a text of the configuration. */
  of(name: Name): number {
    if (name.epoch !== this.#epoch) {
      name.number = this.#known.get(name.text) ?? this.#add(name.text, 0);
      name.epoch = this.#epoch;
    }
    return name.number;
  }

  /** The same for a text without an owner, which costs a look-up if it is not the last one. */
  find(text: string, last: LastName): number {
    if (last.text === text && last.epoch === this.#epoch) return last.number;
    return this.#become(last, text, this.#known.get(text) ?? this.#add(text, 0));
  }

  /** The same for a text that a client has chosen; 0 if the share of such names is used up. */
  findOfClient(text: string, last: LastName): number {
    if (last.text === text && last.epoch === this.#epoch) return last.number;
    return this.#become(last, text, this.#findOfClient(text));
  }

  #become(last: LastName, text: string, number: number): number {
    last.text = text;
    last.number = number;
    last.epoch = this.#epoch;
    return number;
  }

  #findOfClient(text: string): number {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const after = this.#ofClients + LENGTH + Math.min(text.length, MAX_NAME);
    return after > this.#bytes.length * CLIENTS_SHARE ? 0 : this.#add(text, BY_CLIENT);
  }

  #add(text: string, mark: number): number {
    const length = this.#bytes.write(text, this.#used + LENGTH, MAX_NAME);
    this.#bytes.writeUInt32LE(length + mark, this.#used);
    const number = this.#take(text, length + mark);
    // Names of a worker that died before this are overwritten by its replacement; no record refers to them.
    Atomics.store(this.#memory.head, USED + half(this.#epoch), this.#used);
    return number;
  }

  #take(text: string, marked: number): number {
    const number = this.#used + 1;
    const length = LENGTH + (marked & ~BY_CLIENT);
    this.#used += Math.ceil(length / LENGTH) * LENGTH;
    if (marked >= BY_CLIENT) this.#ofClients += length;
    this.#known.set(text, number);
    return number;
  }
}

interface KnownNames {
  epoch: number;
  readonly texts: Map<number, string>;
}

/** Reads the names of a worker, on another thread. */
export class NameReader {
  readonly #memory: RecorderMemory;
  /** By number, for each half, with the epoch that they are of. */
  readonly #known: readonly [KnownNames, KnownNames] = [
    { epoch: 0, texts: new Map() },
    { epoch: 0, texts: new Map() },
  ];

  constructor(memory: RecorderMemory) {
    this.#memory = memory;
  }

  /** The text with this number; undefined for 0, and if other names have taken its place. */
  text(epoch: number, number: number): string | undefined {
    if (number === 0) return undefined;
    const known = this.#known[half(epoch)];
    if (known.epoch !== epoch) {
      known.epoch = epoch;
      known.texts.clear();
    }
    let text = known.texts.get(number);
    if (text === undefined) {
      text = textAt(this.#memory.names[half(epoch)], number - 1);
      fence(this.#memory.head);
      if (!this.#lasts(epoch)) return undefined;
      known.texts.set(number, text);
    }
    return text;
  }

  /** The next epoch is in the other half. */
  #lasts(epoch: number): boolean {
    return Atomics.load(this.#memory.head, EPOCH) - epoch <= 1;
  }
}

function half(epoch: number): 0 | 1 {
  return epoch % 2 === 0 ? 0 : 1;
}

function textAt(bytes: Buffer, at: number): string {
  const length = bytes.readUInt32LE(at) & ~BY_CLIENT;
  return bytes.toString("utf8", at + LENGTH, at + LENGTH + Math.min(length, MAX_NAME));
}
