import { storeInOrder } from "../base/store-in-order.ts";
import { SLOT } from "./layout.ts";

/** Bytes of the header, whose cells are below. */
const HEAD = 64;
/** Bytes of names in each of two halves. Names of 10,000 routes that are all in use take 1.2 MB. */
const NAMES = 1.5 * 1024 * 1024;

const RECENT_SLOTS = 0;
const KEPT_SLOTS = 1;
/** Cells of `head` that `Names` uses: the epoch, and the bytes in use in each half. */
export const EPOCH = 2;
export const USED = 3;
/** A cell that only `fence` writes. */
const FENCE = 5;

/** Slots that follow each other in the memory. */
export interface Area {
  /** Bytes from the beginning of the memory. */
  readonly start: number;
  readonly slots: number;
}

/**
 * The shared memory of one worker's records: a ring of recent ones, an area for those that are kept longer, and the names that both refer to. The
 * main thread owns it, so it outlives the worker, and a replacement continues in it. The system allocates pages as they are used.
 */
export class RecorderMemory {
  readonly buffer: SharedArrayBuffer;
  readonly head: Int32Array;
  /** The memory of names, in two halves. */
  readonly names: readonly [Buffer, Buffer];
  readonly recent: Area;
  readonly kept: Area;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.head = new Int32Array(buffer, 0, HEAD / Int32Array.BYTES_PER_ELEMENT);
    this.names = [Buffer.from(buffer, HEAD, NAMES), Buffer.from(buffer, HEAD + NAMES, NAMES)];
    this.recent = { start: HEAD + 2 * NAMES, slots: this.head[RECENT_SLOTS] ?? 0 };
    this.kept = { start: this.recent.start + this.recent.slots * SLOT, slots: this.head[KEPT_SLOTS] ?? 0 };
  }

  /** New memory with room for so many bytes of records; each area has at least one. */
  static create(recentBytes: number, keptBytes: number): RecorderMemory {
    const recent = Math.max(1, Math.floor(recentBytes / SLOT));
    const kept = Math.max(1, Math.floor(keptBytes / SLOT));
    const buffer = new SharedArrayBuffer(HEAD + 2 * NAMES + (recent + kept) * SLOT);
    new Int32Array(buffer).set([recent, kept], RECENT_SLOTS);
    return new RecorderMemory(buffer);
  }
}

/** Orders what this thread has read before against what it reads later. */
export function fence(head: Int32Array): void {
  storeInOrder(head, FENCE, 0);
}
