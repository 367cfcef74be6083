/** Turns offsets of a text into lines and columns. */
export class Lines {
  readonly #text: string;
  readonly #starts: number[] = [0];

  constructor(text: string) {
    this.#text = text;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  /** 1-based line and column; columns count UTF-16 units, as editors do. */
  place(offset: number): { line: number; column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }

  /** A line without its end. */
  line(line: number): string {
    const next = this.#starts[line];
    return this.#text.slice(this.#starts[line - 1], next === undefined ? undefined : next - 1).replace(/\r$/, "");
  }
}
