/** Uniform numbers from 0 to below 1; the same for the same seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random choices; the same for the same seed. */
export class Dice {
  readonly #next: () => number;
  constructor(seed: number) {
    this.#next = randomNumbers(seed);
  }
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }
  chance(probability: number): boolean {
    return this.#next() < probability;
  }
  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }
  /** As many times as it falls, up to `most`. */
  repeat(most: number, make: () => string): string {
    let text = "";
    for (let n = this.below(most + 1); n > 0; n--) text += make();
    return text;
  }
}
