/** Bodies and header values of a trace as people read them. */
import { type Fields, fieldsOf, isObject } from "../base/fields.ts";
import { readableValue } from "../base/header-text.ts";

/** Characters of a body that the view shows; limited because the text is laid out again at every key. */
const MAX_TEXT = 64 * 1024;

/** A decoded body, with a note about its size and encoding. */
interface ReadableBody {
  /** `36 bytes`, `gzip, 120 of 4096 bytes, cut short`. */
  readonly note: string;
  /** JSON is indented. Undefined for binary data. */
  readonly text: string | undefined;
}

/**
 * What a body in base64 holds without its content-encoding: `gzip`, `deflate`, `br` or `zstd`. Undefined for any other encoding or none, and for
 * bodies that are not encoded as they say.
 */
export type Decompress = (base64: string, encoding: string) => Uint8Array | undefined;

/** The bytes of a text in base64; characters that do not belong there are skipped. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const digits = base64
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replaceAll(/[^A-Za-z0-9+/]/g, "");
  // A lone digit is less than a byte, and browsers reject it.
  const bytes = atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  return Uint8Array.from(bytes, (character) => character.charCodeAt(0));
}

/** The text in a body without its content-encoding; undefined for binary content. */
export function textOfBody(bytes: Uint8Array): string | undefined {
  const text = utf8(bytes);
  return text === undefined || text.includes("\0") ? undefined : text;
}

/** Decodes a base64 body. `encoding` is the content-encoding of its message. */
export function readBody(base64: string, encoding: string, truncated: boolean, decompress: Decompress): ReadableBody {
  const bytes = bytesOf(base64);
  const decompressed = decompress(base64, encoding);
  const content = decompressed ?? bytes;
  const size = `${bytes.length} bytes`;
  const coding = encoding === "" ? "" : decompressed === undefined ? `${encoding}, not decoded` : encoding;
  const cut = truncated ? "cut short" : "";
  const whole = textOfBody(content);
  const text = whole === undefined ? undefined : indented(whole);
  const shown = text !== undefined && text.length > MAX_TEXT ? `the first ${MAX_TEXT / 1024} KiB of its text` : "";
  return { note: [size, coding, cut, shown].filter(Boolean).join(", "), text: text?.slice(0, MAX_TEXT) };
}

/** A base64 body in a state: as JSON or text, or as it came if it is neither. */
export function bodyValue(base64: string, encoding: string, decompress: Decompress): unknown {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)) return base64;
  const text = textOfBody(decompress(base64, encoding) ?? bytesOf(base64));
  if (text === undefined) return base64;
  if (text.length > MAX_TEXT) return text.slice(0, MAX_TEXT);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function indented(text: string): string {
  if (!/^\s*[{[]/.test(text) || text.length > MAX_TEXT) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The text of bytes that are UTF-8; a sequence that the end cuts off is left out. */
function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

/** The content-encoding of one side of a state, in lower case. */
export function encodingOf(side: unknown): string {
  const value = fieldsOf(fieldsOf(side).headers)["content-encoding"];
  return typeof value === "string" ? value.trim().toLowerCase() : "";
}

/** The value with the header values in it as people read them. */
export function withReadableHeaders(value: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => {
      if (!isObject(entry)) return [key, entry];
      return [key, key === "headers" ? readableValues(entry) : withReadableHeaders(entry)];
    }),
  );
}

function readableValues(headers: Fields): Fields {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? readableValue(value) : value]),
  );
}
