/**
 * A recursive-descent parser for CEL's grammar (cel-spec, "Syntax"); macros are expanded as they are parsed. Depth and number of
 * nodes are limited, because everything after it walks the tree by recursion.
 */
import { CelUint, type CelValue } from "../values/types.ts";
import { type Call, isReserved, type ListLiteral, type MapLiteral, type Node, nameOf, type Place } from "./ast.ts";
import { CelError } from "./cel-error.ts";
import { type Token, tokenize } from "./lexer.ts";
import { expandMacro } from "./macros.ts";

const WORD_LITERALS = new Map<string, CelValue>([
  ["true", true],
  ["false", false],
  ["null", null],
]);
/** Operators of other languages. */
const FOREIGN_WORDS = new Map([
  ["and", "&&"],
  ["or", "||"],
  ["is", "=="],
]);
const COMPARISONS = new Set(["<", "<=", ">=", ">", "==", "!="]);
const MAX_INT = 2n ** 63n;
const MAX_UINT = 2n ** 64n;

interface ParseLimits {
  readonly depth: number;
  readonly nodes: number;
}

/**
 * Reads an expression, with its macros expanded. Throws CelError for what is not CEL, and for expressions that are nested
 * deeper or have more parts than `limits` allow.
 */
export function parse(text: string, limits: ParseLimits): Node {
  return parseTokens(tokenize(text), text, limits);
}

/** As `parse`, for an expression that is part of `text`: these tokens, of which the last is `end`. */
export function parseTokens(tokens: readonly Token[], text: string, limits: ParseLimits): Node {
  return new Parser(tokens, text, limits).parse();
}

/** An operand of `&&` or `||`, and the sign before it. */
interface Link {
  readonly sign: number;
  readonly node: Node;
  readonly from: number;
  readonly to: number;
}

class Parser {
  readonly #text: string;
  readonly #limits: ParseLimits;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;
  #nodes = 0;

  constructor(tokens: readonly Token[], text: string, limits: ParseLimits) {
    this.#text = text;
    this.#limits = limits;
    this.#tokens = tokens;
  }

  parse(): Node {
    const node = this.#expression();
    const token = this.#peek();
    if (token.kind !== "end") throw this.#unexpected(token);
    return node;
  }

  #expression(): Node {
    if (++this.#depth > this.#limits.depth)
      throw this.#error(`nested deeper than the ${this.#limits.depth} levels allowed`, this.#peek().at);
    const from = this.#peek().at;
    const condition = this.#or();
    const question = this.#takeSign("?");
    let node = condition;
    if (question !== undefined) {
      const yes = this.#or();
      this.#expect(":");
      const no = this.#expression();
      node = this.#operator("_?_:_", question.at, from, condition, yes, no);
    }
    this.#depth--;
    return node;
  }

  #or(): Node {
    return this.#chain("||", "_||_", () => this.#chain("&&", "_&&_", () => this.#relation()));
  }

  /** Operands of `&&` and `||` become a balanced tree, so that a long chain is not a deep one. */
  #chain(sign: string, name: string, operand: () => Node): Node {
    const links: Link[] = [];
    for (let token: Token | undefined = this.#peek(); token !== undefined; token = this.#takeSign(sign)) {
      const from = this.#peek().at;
      const node = operand();
      links.push({ sign: token.at, node, from, to: this.#end });
    }
    return this.#balance(name, links, 0, links.length);
  }

  #balance(name: string, links: readonly Link[], first: number, end: number): Node {
    if (end - first === 1) return (links[first] as Link).node;
    const middle = first + Math.ceil((end - first) / 2);
    const args = [this.#balance(name, links, first, middle), this.#balance(name, links, middle, end)];
    const [{ from }, { sign: at }, { to }] = [links[first], links[middle], links[end - 1]] as [Link, Link, Link];
    return this.#node({ kind: "call", name, target: undefined, args, at, from, to });
  }

  #relation(): Node {
    const from = this.#peek().at;
    let left = this.#addition();
    for (;;) {
      const token = this.#peek();
      const isIn = token.kind === "identifier" && token.text === "in";
      if (!isIn && !(token.kind === "sign" && COMPARISONS.has(token.text))) return left;
      this.#next++;
      left = this.#operator(isIn ? "@in" : `_${token.text}_`, token.at, from, left, this.#addition());
    }
  }

  #addition(): Node {
    return this.#binary(["+", "-"], () => this.#binary(["*", "/", "%"], () => this.#unary()));
  }

  #binary(signs: readonly string[], operand: () => Node): Node {
    const from = this.#peek().at;
    let left = operand();
    for (let length = 1; ; length++) {
      const token = this.#peek();
      if (token.kind !== "sign" || !signs.includes(token.text)) return left;
      if (length >= this.#limits.depth * 4) throw this.#error("too many operators in a row", token.at);
      this.#next++;
      left = this.#operator(`_${token.text}_`, token.at, from, left, operand());
    }
  }

  #unary(): Node {
    const token = this.#peek();
    if (token.kind !== "sign" || (token.text !== "!" && token.text !== "-"))
      return this.#postfix(this.#primary(), token.at);
    let count = 0;
    while (this.#takeSign(token.text) !== undefined) count++;
    const after = this.#peek();
    if (token.text === "-" && count % 2 === 1 && (after.kind === "int" || after.kind === "double")) {
      this.#next++;
      return this.#postfix(this.#number(after, "-"), token.at);
    }
    const operand = this.#unary();
    return count % 2 === 0 ? operand : this.#operator(token.text === "!" ? "!_" : "-_", token.at, token.at, operand);
  }

  /** `from`: where the first part begins, with its bracket. */
  #postfix(start: Node, from: number): Node {
    let node = start;
    for (let length = 0; ; length++) {
      if (length > this.#limits.depth * 2) throw this.#error("too many fields in a row", this.#peek().at);
      const dot = this.#takeSign(".");
      if (dot !== undefined) {
        node = this.#member(node, dot.at, from);
        continue;
      }
      const bracket = this.#takeSign("[");
      if (bracket === undefined) return node;
      const optional = this.#takeSign("?") !== undefined;
      const index = this.#expression();
      this.#expect("]");
      node = this.#operator(optional ? "_[?_]" : "_[_]", bracket.at, from, node, index);
    }
  }

  #member(operand: Node, dot: number, from: number): Node {
    const optional = this.#takeSign("?") !== undefined;
    const token = this.#peek();
    if (token.kind !== "identifier" && token.kind !== "escaped") throw this.#unexpected(token);
    this.#next++;
    if (token.kind === "identifier" && !optional && this.#takeSign("(") !== undefined)
      return this.#call(token.text, operand, token.at, from);
    if (token.kind === "identifier" && token.text === "in") throw this.#unexpected(token);
    if (this.#isMessage(operand)) {
      const name = `${nameOf(operand)}.${token.text}`;
      if (this.#takeSign("{") !== undefined) return this.#message(name, token.at, from);
    }
    const at = token.kind === "escaped" ? dot : token.at;
    return this.#node({ kind: "select", operand, field: token.text, test: false, optional, ...this.#place(at, from) });
  }

  /** Whether `{` after this name would begin a message: only after names with dots between. */
  #isMessage(operand: Node): boolean {
    const token = this.#peek();
    return token.kind === "sign" && token.text === "{" && nameOf(operand) !== undefined;
  }

  #primary(): Node {
    const token = this.#peek();
    this.#next++;
    switch (token.kind) {
      case "int":
      case "uint":
      case "double":
        return this.#number(token, "");
      case "string":
      case "bytes":
        return this.#node({ kind: "literal", value: token.value, ...this.#place(token.at) });
      case "identifier":
        return this.#name(token, token.at);
      case "sign":
        return this.#bracketed(token);
      default:
        throw this.#unexpected(token);
    }
  }

  #bracketed(token: Token): Node {
    if (token.text === "(") {
      const node = this.#expression();
      this.#expect(")");
      return node;
    }
    if (token.text === "[") return this.#list(token.at);
    if (token.text === "{") return this.#map(token.at);
    if (token.text === ".") {
      const name = this.#peek();
      if (name.kind === "identifier") {
        this.#next++;
        return this.#name(name, token.at);
      }
    }
    throw this.#unexpected(token);
  }

  /** `from` is before the token if a dot makes the name absolute. */
  #name(token: Token, from: number): Node {
    const { text, at } = token;
    const absolute = from !== at;
    const value = WORD_LITERALS.get(text);
    if (value !== undefined && !absolute) return this.#node({ kind: "literal", value, ...this.#place(at) });
    if (text === "in") throw this.#unexpected(token);
    if (value === undefined && isReserved(text)) throw this.#error(`${text} is a reserved word`, at);
    if (this.#takeSign("(") !== undefined) return this.#call(absolute ? `.${text}` : text, undefined, at, from);
    const brace = this.#peek();
    if (brace.kind === "sign" && brace.text === "{") {
      this.#next++;
      return this.#message(text, at, from);
    }
    return this.#node({ kind: "identifier", name: text, absolute, ...this.#place(at, from) });
  }

  #call(name: string, target: Node | undefined, at: number, from: number): Node {
    const args: Node[] = [];
    while (this.#takeSign(")") === undefined) {
      if (args.length > 0) this.#expect(",", ", or )");
      args.push(this.#expression());
    }
    const call: Call = { kind: "call", name, target, args, ...this.#place(at, from) };
    return this.#node(expandMacro(call, this.#text) ?? call);
  }

  #list(at: number): Node {
    const elements: ListLiteral["elements"][number][] = [];
    while (this.#takeSign("]") === undefined) {
      if (elements.length > 0) {
        this.#expect(",", ", or ]");
        if (this.#takeSign("]") !== undefined) break;
      }
      const optional = this.#takeSign("?") !== undefined;
      elements.push({ value: this.#expression(), optional });
    }
    return this.#node({ kind: "list", elements, ...this.#place(at) });
  }

  #map(at: number): Node {
    const entries: MapLiteral["entries"][number][] = [];
    while (this.#takeSign("}") === undefined) {
      if (entries.length > 0) {
        this.#expect(",", ", or }");
        if (this.#takeSign("}") !== undefined) break;
      }
      const optional = this.#takeSign("?") !== undefined;
      const key = this.#expression();
      this.#expect(":");
      entries.push({ key, value: this.#expression(), optional });
    }
    return this.#node({ kind: "map", entries, ...this.#place(at) });
  }

  #message(name: string, at: number, from: number): Node {
    for (let count = 0; this.#takeSign("}") === undefined; count++) {
      if (count > 0) {
        this.#expect(",", ", or }");
        if (this.#takeSign("}") !== undefined) break;
      }
      this.#takeSign("?");
      const field = this.#peek();
      if (field.kind !== "identifier" && field.kind !== "escaped") throw this.#unexpected(field);
      this.#next++;
      this.#expect(":");
      this.#expression();
    }
    return this.#node({ kind: "message", name, ...this.#place(at, from) });
  }

  #number({ kind, text, at }: Token, sign: "" | "-"): Node {
    const place = this.#place(at, at - (sign === "-" ? 1 : 0));
    if (kind === "double") return this.#node({ kind: "literal", value: Number(sign + text), ...place });
    const digits = BigInt(kind === "uint" ? text.slice(0, -1) : text);
    if (kind === "uint") {
      if (digits >= MAX_UINT) throw this.#error("this number is too large for a uint", at);
      return this.#node({ kind: "literal", value: new CelUint(digits), ...place });
    }
    const value = sign === "-" ? -digits : digits;
    if (value >= MAX_INT || value < -MAX_INT) throw this.#error("this number is too large for an int", at);
    return this.#node({ kind: "literal", value, ...place });
  }

  #operator(name: string, at: number, from: number, ...args: readonly Node[]): Node {
    return this.#node({ kind: "call", name, target: undefined, args, ...this.#place(at, from) });
  }

  /** The place of a node whose last token has just been taken. */
  #place(at: number, from = at): Place {
    return { at, from, to: this.#end };
  }

  /** The end of the last token that has been taken. */
  get #end(): number {
    const { kind, text, at } = this.#tokens[this.#next - 1] as Token;
    // The text of an escaped name is without its backquotes.
    return at + text.length + (kind === "escaped" ? 2 : 0);
  }

  #node(node: Node): Node {
    if (++this.#nodes > this.#limits.nodes)
      throw this.#error(`the expression has more than the ${this.#limits.nodes} parts allowed`, node.at);
    return node;
  }

  #peek(): Token {
    return this.#tokens[this.#next] as Token;
  }

  #takeSign(sign: string): Token | undefined {
    const token = this.#peek();
    if (token.kind !== "sign" || token.text !== sign) return undefined;
    this.#next++;
    return token;
  }

  /** `wanted` says what may stand there when that is more than the sign. */
  #expect(sign: string, wanted = sign): void {
    if (this.#takeSign(sign) === undefined) throw this.#unexpected(this.#peek(), wanted);
  }

  #unexpected(token: Token, wanted?: string): CelError {
    const hint = wanted === undefined ? "" : `, expected ${wanted}`;
    if (token.kind === "end") return this.#error(`the expression is not complete${hint}`, token.at);
    const meant = token.kind === "identifier" ? FOREIGN_WORDS.get(token.text) : undefined;
    const question = meant === undefined ? "" : `; did you mean ${meant}?`;
    return this.#error(`unexpected ${token.text}${hint}${question}`, token.at);
  }

  #error(what: string, at: number): CelError {
    return new CelError(what, this.#text, at);
  }
}

/** How deeply one expression, or the body of one function, may be nested, and how many parts it may have. */
export const LIMITS = { depth: 100, nodes: 2000 };
