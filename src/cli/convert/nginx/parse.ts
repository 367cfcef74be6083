/** Reads the syntax of nginx: directives, blocks, quotes, comments and includes. Meaning is given to them elsewhere. */
import type { Place } from "../converted.ts";
import { type Findings, SyntaxProblem } from "../findings.ts";
import { Includes } from "../includes.ts";

export interface Directive extends Place {
  readonly name: string;
  readonly args: readonly string[];
  /** Undefined without `{ … }`. */
  readonly block?: readonly Directive[];
}

interface Token extends Place {
  readonly text: string;
  /** In quotes, so never punctuation. */
  readonly quoted: boolean;
}

const MAX_DEPTH = 32;

/**
 * The directives of a text and, in their place, those of the files that it includes, as long as these are in the folder of `path` or
 * below it. `path` undefined: nothing is included. Other includes become findings, and stay in their place.
 * @throws SyntaxProblem
 */
export function parseNginx(
  name: string,
  text: string,
  path: string | undefined,
  findings: Findings,
): readonly Directive[] {
  const includes = new Includes(path, text.length, findings);
  const read = (file: string, content: string, open: readonly string[]): readonly Directive[] => {
    const tokens = tokenize(file, content);
    let at = 0;
    const parseBlock = (opened: Token | undefined, depth: number): Directive[] => {
      const directives: Directive[] = [];
      for (;;) {
        const first = tokens[at];
        if (first === undefined) {
          if (opened !== undefined) throw new SyntaxProblem(opened, 'the block has no end; add "}"');
          return directives;
        }
        at++;
        if (isMark(first, "}")) {
          if (opened === undefined) throw new SyntaxProblem(first, '"}" ends no block');
          return directives;
        }
        if (isMark(first, ";") || isMark(first, "{"))
          throw new SyntaxProblem(first, `"${first.text}" without a directive`);
        const args: string[] = [];
        let end = tokens[at++];
        while (end !== undefined && !isMark(end, ";") && !isMark(end, "{") && !isMark(end, "}")) {
          args.push(end.text);
          end = tokens[at++];
        }
        if (end === undefined || isMark(end, "}")) throw new SyntaxProblem(first, `${first.text} has no end; add ";"`);
        const { line, column } = first;
        const directive = { name: first.text, args, file, line, column };
        if (isMark(end, "{")) {
          if (depth === MAX_DEPTH) throw new SyntaxProblem(first, `more than ${MAX_DEPTH} blocks in each other`);
          directives.push({ ...directive, block: parseBlock(end, depth + 1) });
        } else if (first.text === "include") directives.push(...included(directive, open));
        else directives.push(directive);
      }
    };
    return parseBlock(undefined, 0);
  };
  const included = (directive: Directive, open: readonly string[]): readonly Directive[] => {
    const [pattern = ""] = directive.args;
    // Types of files that nginx serves itself.
    if (/(^|\/)mime\.types$/.test(pattern)) return [];
    const { files, isPartial } = includes.read(pattern, directive, open);
    const own = files.flatMap((each) => read(each.name, each.text, each.open));
    return isPartial ? [...own, directive] : own;
  };
  return read(name, text, includes.opened);
}

function isMark(token: Token, text: string): boolean {
  return !token.quoted && token.text === text;
}

/** Quotes, escapes and comments are those of nginx: `#` begins a comment only where a word could begin. */
function tokenize(file: string, text: string): readonly Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let lineStart = 0;
  let at = 0;
  /** In a directive whose block is a program. */
  let isLua = false;
  while (at < text.length) {
    const char = text[at] as string;
    if (char === "\n") {
      line++;
      lineStart = ++at;
    } else if (/\s|\ufeff/.test(char)) at++;
    else if (char === "#") {
      const end = text.indexOf("\n", at);
      at = end < 0 ? text.length : end;
    } else {
      const place = { file, line, column: at - lineStart + 1 };
      if (char === ";" || char === "{" || char === "}") {
        tokens.push({ ...place, text: char, quoted: false });
        at++;
        if (char === "{" && isLua) {
          const end = endOfLua(text, at);
          for (; at < end; at++)
            if (text[at] === "\n") {
              line++;
              lineStart = at + 1;
            }
        }
        isLua = false;
        continue;
      }
      const quote = char === '"' || char === "'" ? char : undefined;
      let word = "";
      if (quote !== undefined) at++;
      for (;;) {
        const next = text[at];
        if (next === undefined) {
          if (quote !== undefined) throw new SyntaxProblem(place, `the text in ${quote} has no end`);
          break;
        }
        if (next === "\\" && at + 1 < text.length) {
          const escaped = text[at + 1] as string;
          word += unescaped(escaped);
          if (escaped === "\n") {
            line++;
            lineStart = at + 2;
          }
          at += 2;
          continue;
        }
        if (quote === undefined ? /[\s;{]/.test(next) && !(next === "{" && word.endsWith("$")) : next === quote) break;
        if (next === "\n") {
          line++;
          lineStart = at + 1;
        }
        word += next;
        at++;
      }
      if (quote !== undefined) at++;
      isLua ||= quote === undefined && word.endsWith("_by_lua_block");
      tokens.push({ ...place, text: word, quoted: quote !== undefined });
    }
  }
  return tokens;
}

/** Where the brace is that ends a program in Lua, which OpenResty has in blocks. Braces in its texts and comments do not count. */
function endOfLua(text: string, start: number): number {
  const part = /--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{}]/gs;
  part.lastIndex = start;
  let depth = 0;
  for (let found = part.exec(text); found !== null; found = part.exec(text))
    if (found[0] === "{") depth++;
    else if (found[0] === "}" && depth-- === 0) return found.index;
  return text.length;
}

/** nginx knows these escapes; a backslash before any other character stays, as in regular expressions. */
function unescaped(char: string): string {
  switch (char) {
    case "t":
      return "\t";
    case "r":
      return "\r";
    case "n":
      return "\n";
    case '"':
    case "'":
    case "\\":
      return char;
    default:
      return `\\${char}`;
  }
}
