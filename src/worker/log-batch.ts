/** Lines wait this long for others before they go to the main thread together. */
const FLUSH_MS = 50;
/** Characters that go at once. */
const FLUSH_SIZE = 64 * 1024;

/** Collects log lines so that a line costs a string concatenation and not a message between threads. */
export class LogBatch {
  readonly #send: (text: string) => void;
  #text = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  /** `line` with its line break. */
  add(line: string): void {
    this.#text += line;
    if (this.#text.length >= FLUSH_SIZE) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#text === "") return;
    const text = this.#text;
    this.#text = "";
    this.#send(text);
  }
}
