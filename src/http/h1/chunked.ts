/**
 * Reads bodies in chunked transfer coding (RFC 9112 section 7.1), strictly and as a stream. Strictly, because a peer that reads a
 * size or a line end in another way sees the next message begin elsewhere (request smuggling). Both sides use it: the server for
 * requests (server/body-reader.ts), upstream connections for responses.
 */
import { latin1Slice } from "../../net/node-internals.ts";
import type { HeaderList } from "../message/message.ts";
import { CR, LF, TOKEN, VALUE } from "../message/syntax.ts";
import { FieldSection, parseFields, TRAILER_FIELDS } from "./fields.ts";
import { HEAD_BYTES } from "./head-bytes.ts";
import { rememberNames } from "./serialize.ts";

/** `buffer[from, to)` is a run of body bytes, valid during the call only. */
interface BodySink {
  onBody(buffer: Buffer, from: number, to: number): void;
}

/** More than 15 digits cannot be a size that a number holds exactly. */
const MAX_SIZE_DIGITS = 15;
/** Bytes of all chunk extensions of a message. Clients hardly ever send any; unbounded, they exhaust a server (RFC 9112 7.1.1). */
const MAX_EXTENSION_BYTES = 4096;
const MAX_TRAILER_BYTES = 8192;
const MAX_TRAILERS = 64;

const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What the next byte belongs to. */
const SIZE = 0;
const SIZE_LF = 1;
const EXTENSION_NAME = 2;
const EXTENSION_VALUE = 3;
const QUOTED = 4;
const QUOTED_PAIR = 5;
const AFTER_QUOTED = 6;
const DATA = 7;
const DATA_CR = 8;
const DATA_LF = 9;
const TRAILER_START = 10;
const TRAILER_LINE = 11;
const TRAILER_LF = 12;
const DONE = 13;

/** Value of a hexadecimal digit plus 1; 0 for every other byte. */
const HEX = new Uint8Array(256);
for (let code = 0; code < 128; code++) {
  const digit = Number.parseInt(String.fromCharCode(code), 16);
  if (!Number.isNaN(digit)) HEX[code] = digit + 1;
}

/** Parsing never yields, so one section serves every decoder of the thread. */
const section = new FieldSection();

/** One instance reads one body after another; `reset` comes between them. */
export class ChunkedDecoder {
  /** The last chunk and the trailers have been read. */
  done = false;
  /** What is wrong with the body, once `push` returned -1; safe to show. */
  error = "";
  /** Lower-case names; without the fields that trailers must not have (RFC 9110 6.5.1). Complete when `done`. */
  trailers: HeaderList = [];
  #state = SIZE;
  /** Bytes of the chunk that are still to come. */
  #left = 0;
  #digits = 0;
  /** Characters of the extension's name or value so far. */
  #extensionPart = 0;
  #extensionBytes = 0;
  #trailerText = "";
  #preserveCase = false;

  /** `preserveCase`: the names of trailers are remembered as written (serialize.ts). */
  reset(preserveCase = false): void {
    this.#preserveCase = preserveCase;
    this.done = false;
    this.error = "";
    this.trailers = [];
    this.#state = SIZE;
    this.#left = 0;
    this.#digits = 0;
    this.#extensionPart = 0;
    this.#extensionBytes = 0;
    this.#trailerText = "";
  }

  /**
   * Reads `buffer[start, end)` and passes the data to `sink` in runs as long as possible. Returns the index after the body when it
   * is complete (`done`), else `end`; -1 when the framing is wrong (`error`): the connection cannot be used further.
   */
  push(buffer: Buffer, start: number, end: number, sink: BodySink): number {
    let i = start;
    while (i < end && !this.done) {
      if (this.#state === DATA) {
        const to = Math.min(end, i + this.#left);
        this.#left -= to - i;
        if (this.#left === 0) this.#state = DATA_CR;
        sink.onBody(buffer, i, to);
        i = to;
      } else if (this.#state >= TRAILER_START) {
        i = this.#readTrailers(buffer, i, end);
      } else {
        this.#readFraming(buffer[i] as number);
        i++;
      }
      if (this.error !== "") return -1;
    }
    return i;
  }

  #readFraming(byte: number): void {
    switch (this.#state) {
      case SIZE:
        this.#readSize(byte);
        return;
      case SIZE_LF:
        if (byte !== LF) this.error = "chunk size line does not end in CRLF";
        else if (this.#left > 0) this.#state = DATA;
        else this.#state = TRAILER_START;
        return;
      case DATA_CR:
        // Data beyond the announced size would be framing to one reader and data to another.
        if (byte === CR) this.#state = DATA_LF;
        else this.error = "chunk data is longer than its size";
        return;
      case DATA_LF:
        if (byte !== LF) this.error = "chunk data does not end in CRLF";
        this.#state = SIZE;
        this.#digits = 0;
        return;
      default:
        this.#readExtension(byte);
    }
  }

  #readSize(byte: number): void {
    const digit = HEX[byte] as number;
    if (digit > 0) {
      this.#left = this.#left * 16 + (digit - 1);
      // Leading zeros count too, so the length of a size is limited.
      this.#digits++;
      if (this.#digits > MAX_SIZE_DIGITS || this.#left > Number.MAX_SAFE_INTEGER)
        this.error = "chunk size is too large";
    } else if (this.#digits === 0) {
      this.error = "chunk without a size";
    } else {
      this.#endPart(byte, "invalid character in a chunk size");
    }
  }

  /** `chunk-ext = *( ";" name [ "=" ( token / quoted-string ) ] )`, without the white space that RFC 9112 deprecates. */
  #readExtension(byte: number): void {
    if (++this.#extensionBytes > MAX_EXTENSION_BYTES) {
      this.error = "chunk extensions are too long";
      return;
    }
    const invalid = "invalid chunk extension";
    switch (this.#state) {
      case EXTENSION_NAME:
      case EXTENSION_VALUE:
        if (TOKEN[byte] === 1) this.#extensionPart++;
        else if (this.#state === EXTENSION_VALUE && byte === QUOTE && this.#extensionPart === 0) this.#state = QUOTED;
        else if (this.#extensionPart === 0) this.error = invalid;
        else if (this.#state === EXTENSION_NAME && byte === EQUALS) {
          this.#state = EXTENSION_VALUE;
          this.#extensionPart = 0;
        } else this.#endPart(byte, invalid);
        return;
      case QUOTED:
        if (byte === QUOTE) this.#state = AFTER_QUOTED;
        else if (byte === BACKSLASH) this.#state = QUOTED_PAIR;
        else if (VALUE[byte] !== 1) this.error = invalid;
        return;
      case QUOTED_PAIR:
        if (VALUE[byte] === 1) this.#state = QUOTED;
        else this.error = invalid;
        return;
      default:
        this.#endPart(byte, invalid);
    }
  }

  /** After a size or a whole extension comes another extension or the end of the line. */
  #endPart(byte: number, otherwise: string): void {
    if (byte === CR) {
      this.#state = SIZE_LF;
    } else if (byte === SEMICOLON) {
      this.#state = EXTENSION_NAME;
      this.#extensionPart = 0;
    } else {
      this.error = otherwise;
    }
  }

  /** Collects lines up to the empty one; `#finish` checks them. */
  #readTrailers(buffer: Buffer, start: number, end: number): number {
    let i = start;
    let state = this.#state;
    while (i < end && state !== DONE) {
      const byte = buffer[i++] as number;
      if (state === TRAILER_LINE) {
        if (byte === LF) state = TRAILER_START;
      } else if (state === TRAILER_START && (byte === CR || TOKEN[byte] === 1)) {
        state = byte === CR ? TRAILER_LF : TRAILER_LINE;
      } else if (state === TRAILER_LF && byte === LF) {
        state = DONE;
      } else {
        this.error = "line after the last chunk is neither a trailer nor empty";
        return i;
      }
    }
    this.#state = state;
    if (this.#trailerText.length + (i - start) > MAX_TRAILER_BYTES) {
      this.error = "trailers are too long";
    } else if (state !== DONE || this.#trailerText !== "" || i - start > 2) {
      this.#trailerText += latin1Slice(buffer, start, i);
    }
    if (state === DONE && this.error === "") this.#finish();
    return i;
  }

  #finish(): void {
    if (this.#trailerText !== "") {
      const bytes = HEAD_BYTES.load(this.#trailerText);
      const error = parseFields(this.#trailerText, bytes, 0, MAX_TRAILERS, TRAILER_FIELDS, this.#preserveCase, section);
      if (error !== undefined) this.error = `${error.detail} in the trailers`;
      else if (changesFraming(section)) this.error = "field about framing or connection in the trailers";
      this.trailers = section.headers;
      if (section.rawNames !== null) rememberNames(section.headers, section.rawNames);
    }
    this.done = this.error === "";
  }
}

function changesFraming(trailers: FieldSection): boolean {
  const { contentLength, transferEncoding, connection, upgrade } = trailers;
  return (contentLength ?? transferEncoding ?? connection ?? upgrade) !== undefined;
}
