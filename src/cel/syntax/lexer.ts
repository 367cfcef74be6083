import { CelError } from "../cel-error.ts";
import { readQuoted } from "./quoted.ts";
import type { Token } from "./token.ts";

/** Definitions of functions may have comments in the manner of YAML too; CEL itself has no use for `#`. */
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

/** Signs that CEL has only doubled. */
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
