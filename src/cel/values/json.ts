/** Bodies as values: a reader of JSON that charges what it reads, before it is there. */
import { charge } from "./budget.ts";
import { type Failure, fail } from "./failure.ts";

/** Maximum nesting of objects and arrays. Reading recurses, and so does most later work on the value. */
const MAX_DEPTH = 128;
/** Steps of a value, of a field's name and of a text that is copied, besides one for each character. */
const PER_VALUE = 32;
const PER_NAME = 128;
const PER_COPY = 128;
/** Characters of a text that are read one by one: longer texts are searched, which is faster for them. */
const SHORT = 12;
/** Steps for each character of a text with escapes. */
const PER_ESCAPED = 8;
/** Characters of a long text per step. */
const PER_STEP = 4;
/** Decimal digits that a double always represents exactly. */
const EXACT_DIGITS = 15;
/** Maximum characters of a number. */
const MAX_NUMBER = 1024;
/** White space is charged each time this many characters were read. */
const LONG_SPACE = 4096;

const TAB = 0x09;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Thrown because reading recurses; has no stack trace, because clients choose the text. */
class Rejected {
  readonly failure: Failure;

  constructor(failure: Failure) {
    this.failure = failure;
  }
}

const INVALID = new Rejected(fail("the text is not JSON"));
const TOO_LONG = new Rejected(fail(`the JSON has a number of more than ${MAX_NUMBER} characters`));
const TOO_DEEP = new Rejected(fail(`the JSON has more than ${MAX_DEPTH} levels`));

/**
 * A JSON text (RFC 8259) as plain data; integers beyond 2^53 that an int can hold are bigint. It is read here and not by
 * JSON.parse, because the budget of the evaluation is charged as the value grows, which bounds time and memory whatever a client sends. A
 * duplicate name in an object is an error: the backend may use the first value where a rule would see the last.
 */
export function readJson(text: string): unknown {
  try {
    return new Reader(text).whole();
  } catch (error) {
    if (error instanceof Rejected) return error.failure;
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;
  /** Everything before has been charged. */
  #charged = 0;
  /** Position of the first backslash at or after the last long text; the end of the text without one. */
  #backslash = -1;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): unknown {
    const value = this.#value(this.#next(), MAX_DEPTH);
    if (!Number.isNaN(this.#next())) throw INVALID;
    charge(this.#at - this.#charged);
    return value;
  }

  /** The next character that is not white space; NaN at the end. */
  #next(): number {
    const unit = this.#text.charCodeAt(this.#at);
    return unit > SPACE ? unit : this.#skipSpace();
  }

  #skipSpace(): number {
    const text = this.#text;
    let at = this.#at;
    let unit = text.charCodeAt(at);
    while (unit === SPACE || unit === LINE_FEED || unit === RETURN || unit === TAB) {
      unit = text.charCodeAt(++at);
      if (at - this.#charged > LONG_SPACE) this.#chargeUntil(at);
    }
    this.#at = at;
    return unit;
  }

  #chargeUntil(at: number): void {
    charge(at - this.#charged);
    this.#charged = at;
  }

  /** The value that begins with `unit`, at most `levels` deep. */
  #value(unit: number, levels: number): unknown {
    charge(PER_VALUE + this.#at - this.#charged);
    this.#charged = this.#at;
    switch (unit) {
      case QUOTE:
        return this.#string(true);
      case OPEN_OBJECT:
        if (levels === 0) throw TOO_DEEP;
        return this.#object(levels - 1);
      case OPEN_LIST:
        if (levels === 0) throw TOO_DEEP;
        return this.#list(levels - 1);
      case 0x74:
        return this.#word("true", true);
      case 0x66:
        return this.#word("false", false);
      case 0x6e:
        return this.#word("null", null);
      default:
        return this.#number(unit);
    }
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) throw INVALID;
    this.#at += word.length;
    return value;
  }

  #list(levels: number): unknown[] {
    const list: unknown[] = [];
    this.#at++;
    let unit = this.#next();
    if (unit === CLOSE_LIST) {
      this.#at++;
      return list;
    }
    for (;;) {
      list.push(this.#value(unit, levels));
      unit = this.#next();
      this.#at++;
      if (unit === CLOSE_LIST) return list;
      if (unit !== COMMA) throw INVALID;
      unit = this.#next();
    }
  }

  #object(levels: number): object {
    const object: Record<string, unknown> = {};
    this.#at++;
    let unit = this.#next();
    if (unit === CLOSE_OBJECT) {
      this.#at++;
      return object;
    }
    for (;;) {
      if (unit !== QUOTE) throw INVALID;
      charge(PER_NAME);
      const name = this.#string(false);
      if (this.#next() !== COLON) throw INVALID;
      this.#at++;
      if (Object.hasOwn(object, name))
        throw new Rejected(fail(`the JSON has the name ${quoted(name)} twice in one object`));
      const value = this.#value(this.#next(), levels);
      if (name === "__proto__")
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      else object[name] = value;
      unit = this.#next();
      this.#at++;
      if (unit === CLOSE_OBJECT) return object;
      if (unit !== COMMA) throw INVALID;
      unit = this.#next();
    }
  }

  /** `copied`: a slice would keep the whole text in memory. */
  #string(copied: boolean): string {
    const text = this.#text;
    const start = this.#at + 1;
    const to = copied ? start + SHORT : start + 4 * SHORT;
    for (let i = start; i <= to; i++) {
      const unit = text.charCodeAt(i);
      if (unit === QUOTE) {
        this.#at = i + 1;
        return text.slice(start, i);
      }
      if (unit === BACKSLASH) break;
      // Also at the end of the text, where it is NaN.
      if (!(unit >= SPACE)) throw INVALID;
    }
    return this.#longString(start);
  }

  #longString(start: number): string {
    const text = this.#text;
    if (this.#backslash < start) this.#backslash = found(text.indexOf("\\", start), text);
    let end = found(text.indexOf('"', start), text);
    const escaped = this.#backslash < end;
    charge(PER_COPY + (escaped ? (end - start) * PER_ESCAPED : Math.ceil((end - start) / PER_STEP)));
    // A quote after an odd number of backslashes is part of the text.
    while (escaped && isEscaped(text, end)) {
      const next = found(text.indexOf('"', end + 1), text);
      charge((next - end) * PER_ESCAPED);
      end = next;
    }
    this.#at = end + 1;
    this.#charged = this.#at;
    try {
      // Undoes escapes, finds control characters, and makes a copy.
      return JSON.parse(text.slice(start - 1, end + 1)) as string;
    } catch {
      throw INVALID;
    }
  }

  #number(first: number): number | bigint {
    const text = this.#text;
    const start = this.#at;
    let at = first === MINUS ? start + 1 : start;
    const digits = at;
    let value = 0;
    const most = start + MAX_NUMBER;
    let unit = text.charCodeAt(at);
    for (; unit >= ZERO && unit < COLON && at < most; unit = text.charCodeAt(++at)) value = value * 10 + unit - ZERO;
    const count = at - digits;
    if (count === 0 || (count > 1 && text.charCodeAt(digits) === ZERO)) throw INVALID;
    const whole = unit !== DOT && unit !== 0x65 && unit !== 0x45;
    if (unit === DOT) at = digitsEnd(text, at + 1, most);
    unit = text.charCodeAt(at);
    if (unit === 0x65 || unit === 0x45) {
      const sign = text.charCodeAt(at + 1);
      at = digitsEnd(text, sign === PLUS || sign === MINUS ? at + 2 : at + 1, most);
    }
    if (at >= most) throw TOO_LONG;
    this.#at = at;
    if (whole && count <= EXACT_DIGITS) return first === MINUS ? -value : value;
    charge(PER_COPY);
    return exactly(text.slice(start, at), whole);
  }
}

function found(index: number, text: string): number {
  return index === -1 ? text.length : index;
}

/** Whether an odd number of backslashes stands before `end`. */
function isEscaped(text: string, end: number): boolean {
  if (end === text.length) return false;
  let from = end;
  while (text.charCodeAt(from - 1) === BACKSLASH) from--;
  return (end - from) % 2 === 1;
}

/** The end of the digits that begin at `from`, at least one; `most` if they continue there. */
function digitsEnd(text: string, from: number, most: number): number {
  let at = from;
  for (let unit = text.charCodeAt(at); unit >= ZERO && unit < COLON && at < most; ) unit = text.charCodeAt(++at);
  if (at === from) throw INVALID;
  return at;
}

/** Integers that a double may not represent exactly become bigint, if an int can hold them. */
function exactly(digits: string, whole: boolean): number | bigint {
  const value = Number(digits);
  if (!whole || Number.isSafeInteger(value) || digits.length > 20) return value;
  const integer = BigInt(digits);
  return BigInt.asIntN(64, integer) === integer ? integer : value;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 60));
}
