/**
 * Stores a cell, which becomes visible to other threads after everything that this thread has written before, and before everything that it
 * writes later. A store and then a load are enough on every processor: on arm64 they are `stlr` and `ldar`, of which the first comes after
 * all earlier accesses, the second before all later ones, and the two never change places (Arm Architecture Reference Manual, B2.3.7). A
 * store alone would let later writes become visible before it.
 */
export function storeInOrder(cells: Int32Array, index: number, value: number): void {
  Atomics.store(cells, index, value);
  Atomics.load(cells, index);
}
