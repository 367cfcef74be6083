import type { LineBuffer } from "./access-log.ts";

/** Lines of the access log as a list, each with its line break. */
export class LineList implements LineBuffer {
  readonly at = 0;
  readonly #lines: string[];
  #bytes = Buffer.alloc(0);

  constructor(lines: string[]) {
    this.#lines = lines;
  }

  room(most: number): Buffer {
    this.#bytes = Buffer.alloc(most);
    return this.#bytes;
  }

  commit(end: number): void {
    this.#lines.push(this.#bytes.toString("utf8", 0, end));
  }
}
