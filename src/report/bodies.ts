/** Bodies and header values of a trace as people read them. */
import { brotliDecompressSync, constants, gunzipSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { type Fields, fieldsOf, isObject } from "../base/fields.ts";

/** Characters of a body that the view shows; limited because the text is laid out again at every key. */
const MAX_TEXT = 64 * 1024;

/** A decoded body, with a note about its size and encoding. */
interface ReadableBody {
  /** `36 bytes`, `gzip, 120 of 4096 bytes, cut short`. */
  readonly note: string;
  /** JSON is indented. Undefined for binary data. */
  readonly text: string | undefined;
}

/** Decodes the content-encoding of a body where possible. `text`: undefined for binary content. */
export function contentOf(
  bytes: Uint8Array,
  encoding: string,
): { readonly bytes: Uint8Array; readonly text: string | undefined } {
  const content = decompress(bytes, encoding) ?? bytes;
  return { bytes: content, text: decodeText(content) };
}

/** Decodes a base64 body. `encoding` is the content-encoding of its message. */
export function readBody(base64: string, encoding: string, truncated: boolean): ReadableBody {
  const bytes = Buffer.from(base64, "base64");
  const decompressed = decompress(bytes, encoding);
  const content = decompressed ?? bytes;
  const size = `${bytes.length} bytes`;
  const coding = encoding === "" ? "" : decompressed === undefined ? `${encoding}, not decoded` : encoding;
  const cut = truncated ? "cut short" : "";
  const whole = decodeText(content);
  const text = whole === undefined ? undefined : indented(whole);
  const shown = text !== undefined && text.length > MAX_TEXT ? `the first ${MAX_TEXT / 1024} KiB of its text` : "";
  return { note: [size, coding, cut, shown].filter(Boolean).join(", "), text: text?.slice(0, MAX_TEXT) };
}

/** A base64 body as JSON or text for a state; as it came when it is neither. */
export function bodyValue(base64: string, encoding: string): unknown {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)) return base64;
  const bytes = Buffer.from(base64, "base64");
  const text = decodeText(decompress(bytes, encoding) ?? bytes);
  if (text === undefined) return base64;
  if (text.length > MAX_TEXT) return text.slice(0, MAX_TEXT);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  // The flush modes give what a body that was cut short holds, instead of an error.
  gzip: (bytes) => gunzipSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.Z_SYNC_FLUSH }),
  deflate: (bytes) => inflateSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.Z_SYNC_FLUSH }),
  br: (bytes) => brotliDecompressSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: (bytes) => zstdDecompressSync(bytes, { maxOutputLength: LIMIT, finishFlush: constants.ZSTD_e_flush }),
};

/** Against compression bombs: a body that decodes to more is shown as not decoded. */
const LIMIT = 4 * 1024 * 1024;

function decompress(bytes: Uint8Array, encoding: string): Buffer | undefined {
  const decode = DECODERS[encoding];
  if (decode === undefined || bytes.length === 0) return undefined;
  try {
    return decode(bytes);
  } catch {
    return undefined;
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

function decodeText(bytes: Uint8Array): string | undefined {
  const text = utf8(bytes);
  return text === undefined || text.includes("\0") ? undefined : text;
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

/**
 * The value with the header values in it as people read them: a trace holds each byte of a header as one character
 * (ISO 8859-1, as HTTP defines it), and what is valid UTF-8 was meant as that.
 */
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

/** A header value, decoded as UTF-8 if it is valid UTF-8. */
export function readableValue(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value) || /[\u0100-\uffff]/.test(value)) return value;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}
