/** Keeps a bounded copy of a body that streams by, for the trace; never delays it. */
export class BodyCapture {
  readonly #limit: number;
  readonly #parts: Buffer[] = [];
  #size = 0;
  truncated = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(buffer: Buffer, from: number, to: number): void {
    const room = this.#limit - this.#size;
    if (to - from > room) this.truncated = true;
    const end = Math.min(to, from + room);
    if (end <= from) return;
    this.#parts.push(Buffer.from(buffer.subarray(from, end)));
    this.#size += end - from;
  }

  base64(): string {
    return Buffer.concat(this.#parts).toString("base64");
  }
}
