/** The syntax of definitions of functions, around bodies that are CEL. */
import type { Signature } from "../environment/custom-function.ts";
import { isReserved, type Node } from "../syntax/ast.ts";
import { CelError } from "../syntax/cel-error.ts";
import { type Token, tokenize } from "../syntax/lexer.ts";
import { LIMITS, parseTokens } from "../syntax/parser.ts";

/** One parsed definition. */
export interface Definition extends Signature {
  /** Offset of the name. */
  readonly at: number;
  /** Undefined when it cannot be parsed; the error has been reported. */
  readonly body: Node | undefined;
}

/**
 * Reads `name(a, b...) { body }` and `this.name(a) { body }`, one after the other; comments begin with `#` or `//`. Errors
 * inside a body go to `report`, and reading continues. Throws CelError where the extent of a definition is unclear.
 */
export function readDefinitions(text: string, report: (problem: CelError) => void): Definition[] {
  const reader = new DefinitionReader(text, report);
  const definitions: Definition[] = [];
  for (let next = reader.next(); next !== undefined; next = reader.next()) definitions.push(next);
  return definitions;
}

class DefinitionReader {
  readonly #text: string;
  readonly #report: (problem: CelError) => void;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string, report: (problem: CelError) => void) {
    this.#text = text;
    this.#report = report;
    this.#tokens = tokenize(text, "definitions");
  }

  next(): Definition | undefined {
    if (this.#peek().kind === "end") return undefined;
    const first = this.#name("a definition such as name(parameter) { expression }");
    const member = first.text === "this";
    if (member) this.#expect(".");
    const { text: name, at } = member ? this.#name("the name of a function") : first;
    this.#expect("(");
    const { params, variadic } = this.#params(member);
    return { name, at, member, params, variadic, body: this.#body(name) };
  }

  #params(member: boolean): Pick<Definition, "params" | "variadic"> {
    const params = member ? ["this"] : [];
    while (!this.#take(")")) {
      if (params.length > (member ? 1 : 0)) this.#expect(",");
      const { text, at } = this.#name("the name of a parameter");
      if (text === "this") throw this.#error("`this` is the receiver of a method; choose another name", at);
      if (params.includes(text)) throw this.#error(`duplicate parameter ${text}`, at);
      params.push(text);
      if (!this.#take(".")) continue;
      this.#expect(".");
      this.#expect(".");
      const after = this.#peek();
      if (!this.#take(")")) throw this.#error(`after ${text}..., the last parameter, ) is expected`, after.at);
      return { params, variadic: true };
    }
    return { params, variadic: false };
  }

  /** Up to the closing brace; braces in strings and comments do not count. */
  #body(name: string): Node | undefined {
    const open = this.#peek();
    this.#expect("{");
    const start = this.#next;
    for (let depth = 1; depth > 0; this.#next++) {
      const token = this.#peek();
      if (token.kind === "end") throw this.#error(`the body of ${name}() is not closed; } is expected`, open.at);
      if (token.kind === "sign") depth += token.text === "{" ? 1 : token.text === "}" ? -1 : 0;
    }
    const close = this.#tokens[this.#next - 1] as Token;
    const inside = this.#tokens.slice(start, this.#next - 1);
    try {
      return parseTokens([...inside, { kind: "end", text: "", at: close.at }], this.#text, LIMITS);
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      this.#report(error);
      return undefined;
    }
  }

  #name(wanted: string): Token {
    const token = this.#peek();
    if (token.kind !== "identifier") throw this.#unexpected(token, wanted);
    if (isReserved(token.text)) throw this.#error(`${token.text} is a reserved word; choose another name`, token.at);
    this.#next++;
    return token;
  }

  #expect(sign: string): void {
    if (!this.#take(sign)) throw this.#unexpected(this.#peek(), sign);
  }

  #take(sign: string): boolean {
    const token = this.#peek();
    if (token.kind !== "sign" || token.text !== sign) return false;
    this.#next++;
    return true;
  }

  #peek(): Token {
    return this.#tokens[this.#next] as Token;
  }

  #unexpected(token: Token, wanted: string): CelError {
    const found = token.kind === "end" ? "the text ends here" : `unexpected ${token.text}`;
    return this.#error(`${found}, expected ${wanted}`, token.at);
  }

  #error(what: string, at: number): CelError {
    return new CelError(what, this.#text, at);
  }
}
