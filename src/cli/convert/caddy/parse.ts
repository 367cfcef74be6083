/** Reads the syntax of Caddyfiles: lines, blocks, quotes, heredocs, snippets and imports. Meaning is given to them elsewhere. */
import type { Place } from "../converted.ts";
import { type Findings, SyntaxProblem } from "../findings.ts";
import { Includes } from "../includes.ts";

export interface Directive extends Place {
  readonly name: string;
  readonly args: readonly string[];
  /** Undefined without `{ … }`. */
  readonly block?: readonly Directive[];
}

interface Caddyfile {
  readonly options: readonly Directive[];
  /** The name is the first address, the arguments are the others. */
  readonly sites: readonly Directive[];
}

interface Token extends Place {
  readonly text: string;
  readonly quoted: boolean;
  /** The first of its line. */
  readonly isFirst: boolean;
  /** Files that are being read. */
  readonly open: readonly string[];
}

const MAX_DEPTH = 32;
/** Snippets that import each other would grow without end. */
const MAX_IMPORTS = 2_000;
const MAX_TOKENS = 500_000;

/** @throws SyntaxProblem */
export function parseCaddyfile(name: string, text: string, path: string | undefined, findings: Findings): Caddyfile {
  return new Parser(new Includes(path, text.length, findings), findings).read(name, text);
}

class Parser {
  readonly #includes: Includes;
  readonly #findings: Findings;
  readonly #snippets = new Map<string, readonly Token[]>();
  #tokens: Token[] = [];
  #at = 0;
  #imports = 0;

  constructor(includes: Includes, findings: Findings) {
    this.#includes = includes;
    this.#findings = findings;
  }

  read(name: string, text: string): Caddyfile {
    this.#tokens = tokenize(name, text, this.#includes.opened, this.#findings);
    let options: readonly Directive[] = [];
    const sites: Directive[] = [];
    for (let first = this.#tokens[0]; first !== undefined; first = this.#tokens[this.#at]) {
      if (this.#opensBlock(this.#at)) {
        if (this.#at > 0) throw new SyntaxProblem(first, "a block without an address");
        this.#at++;
        options = this.#block(first, 1);
        continue;
      }
      if (isMark(first, "import")) {
        this.#at++;
        this.#splice(this.#at - 1, this.#imported(first, this.#restOfLine()).tokens);
        continue;
      }
      const [, snippet] = (!first.quoted && /^\((.+)\)$/.exec(first.text)) || [];
      if (snippet !== undefined) {
        this.#at++;
        this.#snippets.set(snippet, this.#rawBlock(first));
        continue;
      }
      sites.push(this.#site(first, sites.length === 0));
    }
    return { options, sites };
  }

  /** `isOnly`: it may have no braces. */
  #site(first: Token, isOnly: boolean): Directive {
    const addresses: string[] = [];
    let goesOn = true;
    for (;;) {
      const token = this.#tokens[this.#at];
      if (token === undefined || this.#opensBlock(this.#at) || (token.isFirst && addresses.length > 0 && !goesOn))
        break;
      if (isMark(token, "{"))
        throw new SyntaxProblem(token, '"{" must be the last word of its line; put what follows on lines of its own');
      goesOn = token.text.endsWith(",");
      addresses.push(...token.text.split(",").filter(Boolean));
      this.#at++;
    }
    const open = this.#tokens[this.#at];
    const site = { name: addresses[0] ?? "", args: addresses.slice(1), ...placeOf(first) };
    if (open !== undefined && this.#opensBlock(this.#at)) {
      this.#at++;
      return { ...site, block: this.#block(open, 1) };
    }
    if (!isOnly) throw new SyntaxProblem(first, `${first.text} has no block; add "{" and "}"`);
    return { ...site, block: this.#block(undefined, 1) };
  }

  #block(opened: Token | undefined, depth: number): readonly Directive[] {
    if (opened !== undefined && depth > MAX_DEPTH)
      throw new SyntaxProblem(opened, `more than ${MAX_DEPTH} blocks in each other`);
    const directives: Directive[] = [];
    for (;;) {
      const first = this.#tokens[this.#at];
      if (first === undefined) {
        if (opened !== undefined) throw new SyntaxProblem(opened, 'the block has no end; add "}"');
        return directives;
      }
      this.#at++;
      if (isMark(first, "}")) {
        if (opened === undefined) throw new SyntaxProblem(first, '"}" ends no block');
        return directives;
      }
      if (isMark(first, "import")) {
        const start = this.#at - 1;
        const rest = this.#restOfLine();
        const { tokens, isPartial } = this.#imported(first, rest);
        this.#splice(start, tokens);
        // What it would have restricted is not known, so it stays as a directive that is not.
        if (isPartial) directives.push({ name: "import", args: rest.map(({ text }) => text), ...placeOf(first) });
        continue;
      }
      const args: string[] = [];
      let block: readonly Directive[] | undefined;
      for (let next = this.#tokens[this.#at]; next !== undefined && !next.isFirst; next = this.#tokens[this.#at]) {
        const opens = this.#opensBlock(this.#at);
        refuseBrace(next);
        if (!opens && isMark(next, "{"))
          throw new SyntaxProblem(next, '"{" must be the last word of its line; put what follows on lines of its own');
        this.#at++;
        if (opens) block = this.#block(next, depth + 1);
        else args.push(next.text);
        if (opens) break;
      }
      directives.push({ name: first.text, args, ...placeOf(first), ...(block && { block }) });
    }
  }

  /** Whether a token is a brace at the end of its line. */
  #opensBlock(at: number): boolean {
    const token = this.#tokens[at];
    return token !== undefined && isMark(token, "{") && this.#tokens[at + 1]?.isFirst !== false;
  }

  #restOfLine(): readonly Token[] {
    const start = this.#at;
    for (let next = this.#tokens[this.#at]; next !== undefined && !next.isFirst; ) {
      refuseBrace(next);
      this.#at++;
      next = this.#tokens[this.#at];
    }
    return this.#tokens.slice(start, this.#at);
  }

  /** The tokens of a snippet between its braces. */
  #rawBlock(first: Token): readonly Token[] {
    if (!this.#opensBlock(this.#at)) throw new SyntaxProblem(first, `${first.text} has no block; add "{" and "}"`);
    const start = ++this.#at;
    for (let depth = 1; ; this.#at++) {
      const token = this.#tokens[this.#at];
      if (token === undefined) throw new SyntaxProblem(first, 'the block has no end; add "}"');
      if (this.#opensBlock(this.#at)) depth++;
      else if (isMark(token, "}") && --depth === 0) break;
    }
    return this.#tokens.slice(start, this.#at++);
  }

  /** Replaces the tokens from `start` to the current one. */
  #splice(start: number, tokens: readonly Token[]): void {
    this.#imports++;
    const [at = { file: "", line: 1, column: 1 }] = this.#tokens.slice(start, start + 1);
    if (this.#imports > MAX_IMPORTS || this.#tokens.length + tokens.length > MAX_TOKENS)
      throw new SyntaxProblem(at, "imports do not end, or are too long");
    this.#tokens = [...this.#tokens.slice(0, start), ...tokens, ...this.#tokens.slice(this.#at)];
    this.#at = start;
  }

  /** `isPartial`: some files were not read. */
  #imported(
    at: Token,
    [what, ...args]: readonly Token[],
  ): { readonly tokens: readonly Token[]; readonly isPartial: boolean } {
    if (what === undefined) throw new SyntaxProblem(at, "import names nothing");
    const brace = args.find((each) => isMark(each, "{"));
    if (brace !== undefined) throw new SyntaxProblem(brace, "import with a block is not converted");
    const snippet = this.#snippets.get(what.text);
    if (snippet !== undefined)
      return { tokens: snippet.flatMap((each) => withArguments(each, args)), isPartial: false };
    const { files, isPartial } = this.#includes.read(what.text, at, at.open);
    return { tokens: files.flatMap(({ name, text, open }) => tokenize(name, text, open, this.#findings)), isPartial };
  }
}

/** `{args[1:3]}` stands for several tokens, `{args[0]}` for a part of one. */
function withArguments(token: Token, args: readonly Token[]): readonly Token[] {
  const [range, from, to] = /^\{args\[(\d*):(\d*)\]\}$/.exec(token.text) ?? [];
  if (range !== undefined)
    return args
      .slice(Number(from), to === "" ? undefined : Number(to))
      .map(({ text, quoted }, i) => ({ ...token, text, quoted, isFirst: token.isFirst && i === 0 }));
  const text = token.text.replace(
    /\{args\[(\d+)\]\}|\{args\.(\d+)\}/g,
    (all, index, old) => args[Number(index ?? old)]?.text ?? all,
  );
  return [{ ...token, text }];
}

function placeOf({ file, line, column }: Place): Place {
  return { file, line, column };
}

/** Behind other words, Caddy takes a closing brace for an argument or refuses it, so it was not meant. */
function refuseBrace(token: Token): void {
  if (isMark(token, "}")) throw new SyntaxProblem(token, '"}" must be on a line of its own');
}

function isMark({ quoted, text }: Token, mark: string): boolean {
  return !quoted && text === mark;
}

/** Variables of the environment are known only to the process that Caddy runs in; defaults stand for them. */
function withoutVariables(file: string, text: string, findings: Findings): string {
  return text.replace(
    /\{\$(\w+)(?::([^}]*))?\}/g,
    (all: string, name: string, preset: string | undefined, at: number) => {
      const before = text.slice(0, at);
      const line = before.split("\n").length;
      const place = { file, line, column: at - before.lastIndexOf("\n") };
      if (preset === undefined) findings.find("error", place, `the variable ${name} is not known`, "write its value");
      else findings.find("warning", place, `the variable ${name} is taken to be ${preset}`, "write its value");
      return preset ?? all;
    },
  );
}

/** `#` begins a comment where a word could begin; a backslash at the end of a line continues it. */
function tokenize(file: string, written: string, open: readonly string[], findings: Findings): Token[] {
  const text = withoutVariables(file, written.replace(/^\ufeff/, ""), findings);
  const tokens: Token[] = [];
  let line = 1;
  let lineStart = 0;
  let isFirst = true;
  let at = 0;
  const newline = (): void => {
    line++;
    lineStart = at + 1;
  };
  while (at < text.length) {
    const char = text[at] as string;
    if (char === "\n") {
      newline();
      isFirst = true;
      at++;
    } else if (char === "\\" && /^\\\r?\n/.test(text.slice(at, at + 3))) {
      at = text.indexOf("\n", at);
      newline();
      at++;
    } else if (/\s/.test(char)) at++;
    else if (char === "#") {
      const end = text.indexOf("\n", at);
      at = end < 0 ? text.length : end;
    } else {
      const place = { file, line, column: at - lineStart + 1 };
      const add = (word: string, quoted: boolean): void => {
        tokens.push({ ...place, text: word, quoted, isFirst, open });
        isFirst = false;
      };
      const [marker, heredoc] = /^<<(\w+)\r?\n/.exec(text.slice(at, at + 64)) ?? [];
      if (marker !== undefined && heredoc !== undefined) {
        const end = new RegExp(`^([ \\t]*)${heredoc}\\b`, "m").exec(text.slice(at + marker.length));
        if (end === null) throw new SyntaxProblem(place, `the text after <<${heredoc} has no end`);
        const body = text.slice(at + marker.length, at + marker.length + end.index);
        const content = body.replace(new RegExp(`^${end[1]}`, "gm"), "").replace(/\r?\n$/, "");
        for (const each of text.slice(at, at + marker.length + end.index)) if (each === "\n") line++;
        at += marker.length + end.index;
        lineStart = at;
        at += end[0].length;
        add(content, true);
      } else if (char === '"' || char === "`") {
        let word = "";
        for (at++; text[at] !== char; at++) {
          const next = text[at];
          if (next === undefined) throw new SyntaxProblem(place, `the text in ${char} has no end`);
          if (next === "\n") newline();
          if (next === "\\" && char === '"' && text[at + 1] === '"') word += text[++at];
          else word += next;
        }
        at++;
        add(word, true);
      } else {
        const word = /^[^\s]+/.exec(text.slice(at))?.[0] ?? char;
        at += word.length;
        add(word, false);
      }
    }
  }
  return tokens;
}
