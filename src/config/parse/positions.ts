/** Places of the values of a configuration in its text. Offsets count UTF-16 units of the expanded text. */
import { type Alias, type Document, isAlias, isMap, isScalar, isSeq, type Node, visit } from "yaml";
import { type Mark, type Marks, readPlainYaml } from "./plain-yaml.ts";

type Path = readonly PropertyKey[];

export interface Positions {
  /** Of the deepest part of the path that exists; of the key `key` there instead, if it exists. */
  offsetOf(path: Path, key: string | undefined): number;
  /** Of the `|` of the literal block at the path; undefined if the value is not a literal block. */
  literalBlockAt(path: Path): number | undefined;
}

/** Positions in what the complete parser has read; aliases are followed to what they stand for. */
export class DocumentPositions implements Positions {
  readonly #document: Document.Parsed;
  #meanings: ReadonlyMap<Alias, Node> | undefined;

  constructor(document: Document.Parsed) {
    this.#document = document;
  }

  offsetOf(path: Path, key: string | undefined): number {
    let node = this.#root();
    let offset = startOf(node) ?? 0;
    for (const part of path) {
      const next = this.#step(node, part);
      if (next === undefined) return offset;
      // A key without a value has its place at the key.
      offset = startOf(isWritten(next.value) ? next.value : (next.key ?? next.value)) ?? offset;
      node = this.#resolve(next.value);
    }
    return (key === undefined ? undefined : startOf(this.#step(node, key)?.key)) ?? offset;
  }

  literalBlockAt(path: Path): number | undefined {
    const node = path.reduce<unknown>((at, part) => this.#resolve(this.#step(at, part)?.value), this.#root());
    return isScalar(node) && node.type === "BLOCK_LITERAL" ? (startOf(node) ?? 0) : undefined;
  }

  #step(node: unknown, part: PropertyKey): { readonly key?: unknown; readonly value: unknown } | undefined {
    if (isMap(node))
      return node.items.find(({ key }) => (isScalar(key) ? String(key.value ?? "") : undefined) === String(part));
    if (isSeq(node) && typeof part === "number" && part < node.items.length) return { value: node.items[part] };
    return undefined;
  }

  #root(): unknown {
    return this.#resolve(this.#document.contents);
  }

  #resolve(node: unknown): unknown {
    if (!isAlias(node)) return node;
    this.#meanings ??= meaningsOf(this.#document);
    return this.#meanings.get(node);
  }
}

/** What each alias stands for. `Alias.resolve` would read the whole document for each: 10,000 routes with an alias each take an hour. */
function meaningsOf(document: Document.Parsed): ReadonlyMap<Alias, Node> {
  const meanings = new Map<Alias, Node>();
  const anchors = new Map<string, Node>();
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        return;
      }
      const meaning = anchors.get(node.source);
      if (meaning !== undefined) meanings.set(node, meaning);
    },
  });
  return meanings;
}

/** Positions in a text that `readPlainYaml` reads: it is read once more, with marks. */
export class PlainPositions implements Positions {
  readonly #text: string;
  readonly #marks: Marks = new Map();
  readonly #root: unknown;
  readonly #start: number;

  constructor(text: string) {
    this.#text = text;
    const read = readPlainYaml(text, this.#marks);
    this.#root = read?.value;
    this.#start = read?.start ?? 0;
  }

  offsetOf(path: Path, key: string | undefined): number {
    const { value, offset, complete } = this.#walk(path);
    return (complete && key !== undefined ? this.#mark(value, key)?.key : undefined) ?? offset;
  }

  literalBlockAt(path: Path): number | undefined {
    const { offset, complete } = this.#walk(path);
    return complete && this.#text[offset] === "|" ? offset : undefined;
  }

  #walk(path: Path): { readonly value: unknown; readonly offset: number; readonly complete: boolean } {
    let value = this.#root;
    let offset = this.#start;
    for (const part of path) {
      const mark = this.#mark(value, part);
      if (mark === undefined) return { value, offset, complete: false };
      offset = mark.value;
      value = (value as Readonly<Record<PropertyKey, unknown>>)[part];
    }
    return { value, offset, complete: true };
  }

  /** The keys of objects are text, the indices of lists are numbers. */
  #mark(container: unknown, part: PropertyKey): Mark | undefined {
    return this.#marks.get(container)?.get(Array.isArray(container) ? part : String(part));
  }
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}

/** Whether a value is written in the text; that of a key without a value is not. */
function isWritten(node: unknown): boolean {
  const range = (node as Node | null | undefined)?.range;
  return range != null && range[1] > range[0];
}

/** Turns offsets of a text into lines and columns. */
export class Lines {
  readonly #text: string;
  readonly #starts: number[] = [0];

  constructor(text: string) {
    this.#text = text;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  /** 1-based line and column; columns count UTF-16 units, as editors do. */
  place(offset: number): { line: number; column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }

  /** A line without its end. */
  line(line: number): string {
    const next = this.#starts[line];
    return this.#text.slice(this.#starts[line - 1], next === undefined ? undefined : next - 1).replace(/\r$/, "");
  }
}
