/** Lines wait this long for others before they go to the main thread together. */
const FLUSH_MS = 50;
/** Bytes that go at once. */
const FLUSH_SIZE = 64 * 1024;
/** UTF-8 needs no more for a unit of UTF-16. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * Collects log lines so that a line costs a copy of its bytes and not a message between threads. They are bytes because a
 * long text of many parts would have to be put together once more before it is sent.
 */
export class LogBatch {
  readonly #send: (lines: Uint8Array<ArrayBuffer>) => void;
  readonly #bytes = Buffer.allocUnsafeSlow(FLUSH_SIZE);
  #used = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `send` may keep the bytes, and their buffer. */
  constructor(send: (lines: Uint8Array<ArrayBuffer>) => void) {
    this.#send = send;
  }

  /** `line` with its line break. */
  add(line: string): void {
    const most = line.length * MAX_BYTES_PER_UNIT;
    if (this.#used + most > FLUSH_SIZE) this.flush();
    if (most > FLUSH_SIZE) {
      this.#send(new TextEncoder().encode(line));
      return;
    }
    this.#used += this.#bytes.write(line, this.#used);
    this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#used === 0) return;
    const lines = new Uint8Array(this.#bytes.subarray(0, this.#used));
    this.#used = 0;
    this.#send(lines);
  }
}
