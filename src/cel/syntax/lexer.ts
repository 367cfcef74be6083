/** Text to tokens. */
import { CelError } from "./cel-error.ts";

/** A token; `at` is its offset. The text of `escaped` is the identifier between backquotes. */
export type Token =
  | {
      readonly kind: "identifier" | "escaped" | "sign" | "int" | "uint" | "double";
      readonly text: string;
      readonly at: number;
    }
  | { readonly kind: "string"; readonly value: string; readonly text: string; readonly at: number }
  | { readonly kind: "bytes"; readonly value: Uint8Array; readonly text: string; readonly at: number }
  | { readonly kind: "end"; readonly text: ""; readonly at: number };

/** Definitions of functions may have YAML-style comments too; CEL itself does not use `#`. */
const SPACE = {
  expression: /(?:[\t\n\f\r ]+|\/\/[^\n]*)+/y,
  definitions: /(?:[\t\n\f\r ]+|(?:\/\/|#)[^\n]*)+/y,
};
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER =
  /0x[0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[uU]?)/y;
const QUOTE = /[rR]?[bB]?(?:"""|'''|"|')|[bB][rR](?:"""|'''|"|')/y;
const ESCAPED = /`([A-Za-z0-9_.\-/ ]+)`/y;
const SIGN = /&&|\|\||[<>=!]=|[-+*/%<>!?:.,()[\]{}]/y;

/**
 * Splits an expression, or definitions of functions, into tokens, the last one `end`. Throws CelError with the place of what
 * is not CEL.
 */
export function tokenize(text: string, kind: keyof typeof SPACE = "expression"): Token[] {
  const space = SPACE[kind];
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  for (;;) {
    at += take(space)?.[0].length ?? 0;
    if (at >= text.length) break;
    const quote = take(QUOTE);
    if (quote !== null) {
      const { token, end } = readQuoted(text, at, quote[0]);
      tokens.push(token);
      at = end;
      continue;
    }
    const token = readToken(take, at);
    if (token === undefined) throw new CelError(unexpected(text.charAt(at)), text, at);
    tokens.push(token.token);
    at += token.length;
  }
  tokens.push({ kind: "end", text: "", at: text.length });
  return tokens;
}

/** Characters that are operators in CEL only when doubled. */
function unexpected(character: string): string {
  const question = /[=&|]/.test(character) ? `; did you mean ${character}${character}?` : "";
  return `unexpected character ${JSON.stringify(character)}${question}`;
}

type Take = (pattern: RegExp) => RegExpExecArray | null;

function readToken(take: Take, at: number): { readonly token: Token; readonly length: number } | undefined {
  const word = take(WORD);
  if (word !== null) return { token: { kind: "identifier", text: word[0], at }, length: word[0].length };
  const number = take(NUMBER);
  if (number !== null) return { token: { kind: numberKind(number[0]), text: number[0], at }, length: number[0].length };
  const escaped = take(ESCAPED);
  if (escaped !== null) return { token: { kind: "escaped", text: escaped[1] ?? "", at }, length: escaped[0].length };
  const sign = take(SIGN);
  return sign === null ? undefined : { token: { kind: "sign", text: sign[0], at }, length: sign[0].length };
}

function numberKind(text: string): "int" | "uint" | "double" {
  if (/[uU]$/.test(text)) return "uint";
  return !text.startsWith("0x") && /[.eE]/.test(text) ? "double" : "int";
}

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
function readQuoted(text: string, start: number, opening: string): { readonly token: Token; readonly end: number } {
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

/** The value of the escape at `at`: a code point in strings, a byte in bytes. */
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

/** Line breaks in literals are \n, whatever the file uses. */
function lineBreaks(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
}
