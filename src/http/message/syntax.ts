/** Character classes of RFC 9110 section 5 and RFC 9112, as tables over the 256 bytes, and the errors of text that breaks them. */
import type { ErrorCode } from "../../base/errors.ts";
import type { Latin1 } from "./message.ts";

export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;

const SYMBOLS_OF_TOKENS = "!#$%&'*+-.^_`|~";

/** 1 for the characters of a token (RFC 9110 5.6.2). */
export const TOKEN = new Uint8Array(256);
/** 1 for what a field value may hold: HTAB, SP, visible ASCII and obs-text (RFC 9110 5.5). */
export const VALUE = new Uint8Array(256);
/** 1 for what a request target may hold before `parseTarget` checks it: visible ASCII. */
export const VISIBLE = new Uint8Array(256);

for (let code = 0; code < 256; code++) {
  const character = String.fromCharCode(code);
  if (/[0-9A-Za-z]/.test(character) || SYMBOLS_OF_TOKENS.includes(character)) TOKEN[code] = 1;
  if (code === TAB || (code >= SP && code !== 0x7f)) VALUE[code] = 1;
  if (code > SP && code < 0x7f) VISIBLE[code] = 1;
}

/** SP and HTAB: the only white space within a line. */
export function isBlank(code: number): boolean {
  return code === SP || code === TAB;
}

function consistsOf(text: string, table: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (table[text.charCodeAt(i)] !== 1) return false;
  return true;
}

/** True for a token, such as a method or a field name. */
export function isToken(text: string): text is Latin1 {
  return text !== "" && consistsOf(text, TOKEN);
}

/**
 * True when `text` can be sent as a field value. Call it for every value that was not received as a field value: CR or LF would
 * split the message, and so would characters above U+00FF, of which only the low byte is sent.
 */
export function isFieldValue(text: string): text is Latin1 {
  return consistsOf(text, VALUE);
}

/** For text of the gateway itself, which is known to be valid. Throws a TypeError for text that cannot be sent in a field value. */
export function latin1(text: string): Latin1 {
  if (isFieldValue(text)) return text;
  throw new TypeError("text with control characters or characters above U+00FF cannot be sent in a header field");
}

/** Why a message was rejected. `detail` says what is wrong and quotes nothing from the message, so it is safe to show. */
export interface HeadError {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** An error with status 400; made once at load, so rejecting costs no more than accepting. */
export function invalid(detail: string): HeadError {
  return { code: "TG_INVALID_REQUEST", detail };
}
