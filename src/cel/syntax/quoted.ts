import { CelError } from "../cel-error.ts";
import type { Token } from "./token.ts";

const SIMPLE: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "?": "?",
  '"': '"',
  "'": "'",
  "`": "`",
};

/** Reads the string or bytes literal at `start`, whose prefix and opening quotes are `opening`. Throws CelError. */
export function readQuoted(
  text: string,
  start: number,
  opening: string,
): { readonly token: Token; readonly end: number } {
  const quotes = opening.replace(/^[a-zA-Z]*/, "");
  const raw = /^[bB]?[rR]/.test(opening);
  const bytes = /^[rR]?[bB]/.test(opening);
  let at = start + opening.length;
  let plainFrom = at;
  const parts: (string | number)[] = [];
  for (;;) {
    if (at >= text.length) throw new CelError("this literal has no closing quote", text, start);
    if (text.startsWith(quotes, at)) break;
    const character = text[at];
    if (quotes.length === 1 && (character === "\n" || character === "\r"))
      throw new CelError("a line break inside quotes; write \\n, or use three quotes", text, at);
    if (character !== "\\") {
      at++;
      continue;
    }
    if (raw) {
      at += 2;
      continue;
    }
    parts.push(text.slice(plainFrom, at));
    const escaped = readEscape(text, at, bytes);
    parts.push(escaped.value);
    at += escaped.length;
    plainFrom = at;
  }
  parts.push(text.slice(plainFrom, at));
  const end = at + quotes.length;
  const shown = text.slice(start, end);
  return bytes
    ? { token: { kind: "bytes", value: toBytes(parts), text: shown, at: start }, end }
    : { token: { kind: "string", value: toText(parts), text: shown, at: start }, end };
}

/** What the escape at `at` stands for: a code point in strings and a byte in bytes. */
function readEscape(text: string, at: number, bytes: boolean): { readonly value: number; readonly length: number } {
  const letter = text[at + 1] ?? "";
  const simple = SIMPLE[letter];
  if (simple !== undefined) return { value: simple.charCodeAt(0), length: 2 };
  const digits = numericEscape(text.slice(at + 1, at + 10));
  if (digits === undefined)
    throw new CelError(`unknown escape \\${letter}; write \\\\ for a backslash, or r"…" for none`, text, at);
  const { code, length } = digits;
  const isByte = letter !== "u" && letter !== "U";
  if (bytes && !isByte) throw new CelError("bytes have no \\u escapes; write \\x and two digits", text, at);
  if (isByte && code > 255) throw new CelError("an octal escape is at most \\377", text, at);
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    throw new CelError("this escape is not a Unicode character", text, at);
  return { value: code, length: length + 1 };
}

function numericEscape(text: string): { readonly code: number; readonly length: number } | undefined {
  const match = /^(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))/.exec(text);
  if (match === null) return undefined;
  const hex = match[1] ?? match[2] ?? match[3];
  const code = hex === undefined ? Number.parseInt(match[4] ?? "", 8) : Number.parseInt(hex, 16);
  return { code, length: match[0].length };
}

function toText(parts: readonly (string | number)[]): string {
  return parts.map((part) => (typeof part === "string" ? lineBreaks(part) : String.fromCodePoint(part))).join("");
}

function toBytes(parts: readonly (string | number)[]): Uint8Array {
  return Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(lineBreaks(part)) : Buffer.of(part))),
  );
}

/** Line breaks of the source are \n in values, however the file has them. */
function lineBreaks(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
}
