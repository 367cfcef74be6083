/**
 * A fast reader for the part of YAML 1.2 that configurations are written in: block mappings and sequences, flow collections
 * on one line, plain and quoted scalars on one line, and literal blocks. Anything else (anchors, tags, folded text, merge
 * keys, scalars of several lines, repeated keys, errors) is left to the complete parser, which then decides what the text
 * means. It reads 10,000 routes (1.6 MB) in about 40 ms, where the complete parser takes 1.5 s and 300 MiB, most of it for
 * the positions of tokens that only an error message needs.
 *
 * What it returns is what the complete parser would: a property test compares the two.
 */

/** The position of a value in the text; `key` is undefined in lists. Offsets count UTF-16 units. */
export interface Mark {
  readonly key: number | undefined;
  /** That of the key when the value is not written. */
  readonly value: number;
}

/** The marks of the entries of each object and list. */
export type Marks = Map<unknown, Map<PropertyKey, Mark>>;

/** What the text says; undefined when it needs the complete parser. `marks` takes the place of each value, if given. */
export function readPlainYaml(
  text: string,
  marks?: Marks,
): { readonly value: object; readonly start: number } | undefined {
  if (BEYOND.test(text)) return undefined;
  try {
    return new PlainReader(text, marks).read();
  } catch (error) {
    if (error instanceof BeyondPlain) return undefined;
    throw error;
  }
}

/** Tabs, carriage returns, other control characters, byte order marks, and a key that would set a prototype. */
const BEYOND = /[[\p{Cc}\u2028\u2029\ufeff]--\n]|__proto__/v;

/** The text needs the complete parser. */
class BeyondPlain extends Error {}

/** Configurations nest less deeply; the complete parser says what is wrong with others. */
const MAX_DEPTH = 64;
/** YAML limits keys on one line to 1,024 characters. */
const MAX_KEY = 200;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const QUOTE = 0x22;
const HASH = 0x23;
const APOSTROPHE = 0x27;
const COMMA = 0x2c;
const DASH = 0x2d;
const DOT = 0x2e;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_MAP = 0x7b;
const BAR = 0x7c;
const CLOSE_MAP = 0x7d;

/** A plain key up to its colon: a name, that of a pseudo header, or a whole number such as a port. */
const KEY = /(?::?[A-Za-z_][\w./-]*|0|[1-9][0-9]{0,14})(?=:(?:[ \n]|$))/y;
/** Keys that YAML does not read as text. */
const KEYWORD = /^(?:null|true|false)$/i;
const WHOLE = /^(?:0|[1-9][0-9]{0,14})$/;
const DECIMAL = /^(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}$/;
/** All that the core schema takes for a number and that begins with a digit. */
const NUMERIC = /^(?:0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)$/;
const DOTTED_NUMBER = /^\.(?:[0-9]|inf|nan)/i;
/** What a plain scalar may begin with besides letters, digits and dots; indicators and signs are not among them. */
const OTHER_STARTS: ReadonlySet<number> = new Set(Array.from("/_$(^\\=;~", (each) => each.charCodeAt(0)));
/** Escapes that JSON and YAML have in common. */
const ESCAPES = /\\["\\/bfnrt]|\\/g;

class PlainReader {
  readonly #text: string;
  readonly #marks: Marks | undefined;
  /** Of the first character of the line at hand that is not a space; of what is left of it inside a line. */
  #at = 0;
  /** Column of `#at`; -1 at the end of the text. */
  #indent = -1;

  constructor(text: string, marks: Marks | undefined) {
    this.#text = text;
    this.#marks = marks;
  }

  read(): { readonly value: object; readonly start: number } {
    this.#toLine(0);
    const start = this.#at;
    if (this.#indent !== 0) throw new BeyondPlain();
    const value = this.#mapping(0, 0);
    // A line whose indentation is that of no open collection, such as the second one of a scalar, has ended all of them.
    if (this.#at < this.#text.length) throw new BeyondPlain();
    return { value, start };
  }

  /** Goes to the first line, from the one that begins at `start`, that is neither empty nor a comment. */
  #toLine(start: number): void {
    const text = this.#text;
    for (let line = start; ; ) {
      let at = line;
      while (text.charCodeAt(at) === SPACE) at++;
      const code = text.charCodeAt(at);
      if (at < text.length && code !== NEWLINE && code !== HASH) {
        this.#at = at;
        this.#indent = at - line;
        return;
      }
      const end = text.indexOf("\n", at);
      if (end === -1) {
        this.#at = text.length;
        this.#indent = -1;
        return;
      }
      line = end + 1;
    }
  }

  /** A block mapping or sequence whose first line is at hand. */
  #block(depth: number): object {
    if (depth > MAX_DEPTH) throw new BeyondPlain();
    return this.#isDash(this.#at) ? this.#sequence(this.#indent, depth) : this.#mapping(this.#indent, depth);
  }

  #mapping(indent: number, depth: number): object {
    const map: Record<string, unknown> = {};
    const marks = this.#marksOf(map);
    do {
      const start = this.#at;
      const key = this.#key();
      if (Object.hasOwn(map, key)) throw new BeyondPlain();
      const at = this.#afterSpaces(this.#at);
      if (!this.#endsAt(at)) {
        marks?.set(key, { key: start, value: at });
        map[key] = this.#inline(at, indent);
        continue;
      }
      this.#toNextLine(at);
      const nested = this.#indent > indent || (this.#indent === indent && this.#isDash(this.#at));
      marks?.set(key, { key: start, value: nested ? this.#at : start });
      map[key] = nested ? this.#block(depth + 1) : null;
    } while (this.#indent === indent && !this.#isDash(this.#at));
    return map;
  }

  #sequence(indent: number, depth: number): object {
    const list: unknown[] = [];
    const marks = this.#marksOf(list);
    while (this.#indent === indent && this.#isDash(this.#at)) {
      const at = this.#afterSpaces(this.#at + 1);
      if (this.#endsAt(at)) {
        this.#toNextLine(at);
        if (this.#indent <= indent) throw new BeyondPlain();
      } else {
        if (this.#isDash(at)) throw new BeyondPlain();
        KEY.lastIndex = at;
        if (!KEY.test(this.#text)) {
          marks?.set(list.length, { key: undefined, value: at });
          list.push(this.#inline(at, indent));
          continue;
        }
        // `- name: …` begins a mapping in the column of the name.
        this.#indent += at - this.#at;
        this.#at = at;
      }
      marks?.set(list.length, { key: undefined, value: this.#at });
      list.push(this.#block(depth + 1));
    }
    return list;
  }

  /** Reads the current key, and advances behind its colon. */
  #key(): string {
    const start = this.#at;
    const code = this.#text.charCodeAt(start);
    if (code === QUOTE || code === APOSTROPHE) {
      const key = this.#quoted(start);
      if (this.#text.charCodeAt(this.#at) !== COLON || this.#at - start > MAX_KEY) throw new BeyondPlain();
      this.#at++;
      const next = this.#text.charCodeAt(this.#at);
      if (this.#at < this.#text.length && next !== SPACE && next !== NEWLINE) throw new BeyondPlain();
      return key;
    }
    KEY.lastIndex = start;
    if (!KEY.test(this.#text)) throw new BeyondPlain();
    const end = KEY.lastIndex;
    const key = this.#text.slice(start, end);
    if (end - start > MAX_KEY || KEYWORD.test(key)) throw new BeyondPlain();
    this.#at = end + 1;
    return key;
  }

  /** A value that begins at `at`, on the line of its key or dash, whose column is `indent`; goes on to the next line. */
  #inline(at: number, indent: number): unknown {
    const code = this.#text.charCodeAt(at);
    if (code === BAR) return this.#literal(at, indent);
    let value: unknown;
    if (code === QUOTE || code === APOSTROPHE) value = this.#quoted(at);
    else if (code === OPEN_LIST || code === OPEN_MAP) value = this.#flow(at, 0);
    else value = this.#plain(at);
    const rest = this.#afterSpaces(this.#at);
    // A comment needs a space before it.
    if (!this.#endsAt(rest) || (rest === this.#at && this.#text.charCodeAt(rest) === HASH)) throw new BeyondPlain();
    this.#toNextLine(rest);
    return value;
  }

  #plain(start: number): unknown {
    const text = this.#text;
    let at = start;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE || (code === HASH && text.charCodeAt(at - 1) === SPACE)) break;
      if (code === COLON && this.#isSpaceOrEnd(at + 1)) throw new BeyondPlain();
    }
    while (text.charCodeAt(at - 1) === SPACE) at--;
    this.#at = at;
    return scalar(text.slice(start, at));
  }

  /** Reads single- or double-quoted text on one line, and advances behind it. */
  #quoted(start: number): string {
    const text = this.#text;
    const quote = text.charCodeAt(start);
    let special = false;
    for (let at = start + 1; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE) break;
      if (code === BACKSLASH && quote === QUOTE) {
        special = true;
        at++;
      } else if (code === quote) {
        if (quote === APOSTROPHE && text.charCodeAt(at + 1) === APOSTROPHE) {
          special = true;
          at++;
          continue;
        }
        this.#at = at + 1;
        const inner = text.slice(start + 1, at);
        if (!special) return inner;
        return quote === QUOTE ? jsonUnescape(inner) : inner.replaceAll("''", "'");
      }
    }
    throw new BeyondPlain();
  }

  /** Reads a flow collection, or a scalar inside one, and advances behind it. */
  #flow(start: number, depth: number): unknown {
    if (depth > MAX_DEPTH) throw new BeyondPlain();
    switch (this.#text.charCodeAt(start)) {
      case OPEN_LIST:
        return this.#flowList(start, depth);
      case OPEN_MAP:
        return this.#flowMap(start, depth);
      case QUOTE:
      case APOSTROPHE:
        return this.#quoted(start);
      default:
        return this.#flowPlain(start);
    }
  }

  #flowList(start: number, depth: number): unknown[] {
    const list: unknown[] = [];
    const marks = this.#marksOf(list);
    let at = this.#afterSpaces(start + 1);
    if (this.#text.charCodeAt(at) === CLOSE_LIST) {
      this.#at = at + 1;
      return list;
    }
    for (;;) {
      marks?.set(list.length, { key: undefined, value: at });
      list.push(this.#flow(at, depth + 1));
      if (!this.#another(CLOSE_LIST)) return list;
      at = this.#at;
    }
  }

  #flowMap(start: number, depth: number): object {
    const map: Record<string, unknown> = {};
    const marks = this.#marksOf(map);
    this.#at = this.#afterSpaces(start + 1);
    if (this.#text.charCodeAt(this.#at) === CLOSE_MAP) {
      this.#at++;
      return map;
    }
    for (;;) {
      const begin = this.#at;
      const key = this.#key();
      if (Object.hasOwn(map, key)) throw new BeyondPlain();
      const at = this.#afterSpaces(this.#at);
      marks?.set(key, { key: begin, value: at });
      map[key] = this.#flow(at, depth + 1);
      if (!this.#another(CLOSE_MAP)) return map;
    }
  }

  /** After an entry: whether another one follows, which is then the current one; otherwise advances behind the collection. */
  #another(close: number): boolean {
    const at = this.#afterSpaces(this.#at);
    const code = this.#text.charCodeAt(at);
    this.#at = at + 1;
    if (code === close) return false;
    if (code !== COMMA) throw new BeyondPlain();
    this.#at = this.#afterSpaces(this.#at);
    return true;
  }

  #flowPlain(start: number): unknown {
    const text = this.#text;
    let at = start;
    for (; ; at++) {
      const code = text.charCodeAt(at);
      if (code === COMMA || code === CLOSE_LIST || code === CLOSE_MAP) break;
      if (at >= text.length || code === NEWLINE || code === OPEN_LIST || code === OPEN_MAP) throw new BeyondPlain();
      if (code === HASH && text.charCodeAt(at - 1) === SPACE) throw new BeyondPlain();
      if (code === COLON && (this.#isSpaceOrEnd(at + 1) || isFlowIndicator(text.charCodeAt(at + 1))))
        throw new BeyondPlain();
    }
    while (text.charCodeAt(at - 1) === SPACE) at--;
    if (at <= start) throw new BeyondPlain();
    this.#at = at;
    return scalar(text.slice(start, at));
  }

  /** A literal block without leading empty lines; `|` ends with one line break, `|-` with none. */
  #literal(start: number, indent: number): string {
    const text = this.#text;
    const strip = text.charCodeAt(start + 1) === DASH;
    const header = start + (strip ? 2 : 1);
    if (text.charCodeAt(header) !== NEWLINE) throw new BeyondPlain();
    let line = header + 1;
    const margin = this.#afterSpaces(line) - line;
    if (margin <= indent) throw new BeyondPlain();
    let content = "";
    let empty = "";
    for (;;) {
      const end = text.indexOf("\n", line);
      if (end === -1) throw new BeyondPlain();
      const at = this.#afterSpaces(line);
      if (at === end) {
        if (content === "" || at - line > margin) throw new BeyondPlain();
        empty += "\n";
      } else {
        if (at - line < margin) break;
        content += `${empty}${text.slice(line + margin, end)}\n`;
        empty = "";
      }
      line = end + 1;
      if (line === text.length) break;
    }
    this.#toLine(line);
    return strip ? content.slice(0, -1) : content;
  }

  #marksOf(container: object): Map<PropertyKey, Mark> | undefined {
    if (this.#marks === undefined) return undefined;
    const marks = new Map<PropertyKey, Mark>();
    this.#marks.set(container, marks);
    return marks;
  }

  #toNextLine(at: number): void {
    const end = this.#text.indexOf("\n", at);
    this.#toLine(end === -1 ? this.#text.length : end + 1);
  }

  #afterSpaces(from: number): number {
    let at = from;
    while (this.#text.charCodeAt(at) === SPACE) at++;
    return at;
  }

  /** Whether the line has nothing more to say at `at`. */
  #endsAt(at: number): boolean {
    const code = this.#text.charCodeAt(at);
    return at >= this.#text.length || code === NEWLINE || code === HASH;
  }

  #isSpaceOrEnd(at: number): boolean {
    const code = this.#text.charCodeAt(at);
    return at >= this.#text.length || code === SPACE || code === NEWLINE;
  }

  /** The dash of a sequence. */
  #isDash(at: number): boolean {
    return this.#text.charCodeAt(at) === DASH && this.#isSpaceOrEnd(at + 1);
  }
}

function isFlowIndicator(code: number): boolean {
  return code === COMMA || code === OPEN_LIST || code === CLOSE_LIST || code === OPEN_MAP || code === CLOSE_MAP;
}

function jsonUnescape(inner: string): string {
  for (const [found] of inner.matchAll(ESCAPES)) if (found.length === 1) throw new BeyondPlain();
  return JSON.parse(`"${inner}"`) as string;
}

/** A plain scalar by the core schema of YAML 1.2. */
function scalar(text: string): unknown {
  const code = text.charCodeAt(0);
  if (isLetter(code)) return keyword(text);
  if (code >= 0x30 && code <= 0x39) {
    if (WHOLE.test(text) || DECIMAL.test(text)) return Number(text);
    if (NUMERIC.test(text)) throw new BeyondPlain();
    return text;
  }
  if (text === "~") return null;
  if (OTHER_STARTS.has(code) || code > 0xa0) return text;
  if (code === DOT && !DOTTED_NUMBER.test(text)) return text;
  throw new BeyondPlain();
}

function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

function keyword(text: string): unknown {
  switch (text) {
    case "null":
    case "Null":
    case "NULL":
      return null;
    case "true":
    case "True":
    case "TRUE":
      return true;
    case "false":
    case "False":
    case "FALSE":
      return false;
    default:
      return text;
  }
}
