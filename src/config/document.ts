import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { type Diagnostic, formatPath } from "./diagnostics.ts";
import { expandEnv } from "./env.ts";

/** Values under these keys are never quoted in an error. */
const SECRET_KEY = /key|secret|token|password|htpasswd|body/i;

/** Parts of a diagnostic that its place does not tell. */
export type Problem = Pick<Diagnostic, "message" | "expected" | "suggestion"> & { readonly warning?: boolean };

/** One configuration text, parsed once, that can tell where each of its values stands. */
export class ConfigDocument {
  readonly file: string;
  readonly diagnostics: Diagnostic[] = [];
  /** Fields that were reported in words of their own rather than as unknown. */
  readonly explained: { readonly path: readonly PropertyKey[]; readonly key: string }[] = [];
  readonly value: unknown;
  readonly #original: string;
  readonly #lines = new LineCounter();
  readonly #toOriginal: (offset: number) => number;
  readonly #document: Document.Parsed;

  /** Syntax errors and unset variables are in `diagnostics` afterwards; `value` holds what could be read. */
  constructor(file: string, text: string, env: Readonly<Record<string, string | undefined>>) {
    this.file = file;
    this.#original = text;
    this.#countLines();
    const expanded = expandEnv(text, env);
    this.#toOriginal = expanded.toOriginal;
    for (const { offset, message } of expanded.problems) this.#add(offset, "", { message }, true);
    this.#document = parseDocument(expanded.text, {
      prettyErrors: false,
      uniqueKeys: true,
      maxAliasCount: 100,
    } as object);
    for (const error of this.#document.errors)
      this.#add(expanded.toOriginal(error.pos[0]), "", { message: error.message }, true);
    this.value = this.diagnostics.length > 0 ? undefined : this.#toValue();
  }

  /** Adds a problem with the value at `path`; `key` points at the key instead of the value. */
  report(path: readonly PropertyKey[], problem: Problem, key?: string): void {
    const offset = this.#toOriginal(this.#offsetOf(path, key));
    const shown = key === undefined ? path : [...path, key];
    const secret = shown.some((part) => typeof part === "string" && SECRET_KEY.test(part));
    this.#add(offset, formatPath(shown), problem, !secret);
  }

  /** Nothing that could be used is wrong. */
  get ok(): boolean {
    return !this.diagnostics.some((diagnostic) => diagnostic.severity === "error");
  }

  #toValue(): unknown {
    try {
      return this.#document.toJS();
    } catch (error) {
      this.#add(0, "", { message: error instanceof Error ? error.message : String(error) }, false);
      return undefined;
    }
  }

  #add(offset: number, path: string, { warning = false, ...problem }: Problem, showSource: boolean): void {
    const { line, col } = this.#lines.linePos(offset);
    const source = this.#original.split("\n", line)[line - 1]?.replace(/\r$/, "").slice(0, 200);
    this.diagnostics.push({
      severity: warning ? "warning" : "error",
      file: this.file,
      line,
      column: col,
      path,
      ...problem,
      ...(showSource && source !== undefined && { source }),
    });
  }

  /** Offset in the expanded text of the deepest part of the path that exists. */
  #offsetOf(path: readonly PropertyKey[], key: string | undefined): number {
    let node: unknown = this.#document.contents;
    let offset = startOf(node) ?? 0;
    for (const [depth, part] of [...path, ...(key === undefined ? [] : [key])].entries()) {
      const last = key !== undefined && depth === path.length;
      if (isMap(node)) {
        const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
        if (pair === undefined) return offset;
        if (last) return startOf(pair.key) ?? offset;
        // A key without a value has its place at the key.
        offset = startOf(pair.value) ?? startOf(pair.key) ?? offset;
        node = pair.value;
      } else if (isSeq(node) && typeof part === "number") {
        node = node.items[part];
        offset = startOf(node) ?? offset;
      } else return offset;
    }
    return offset;
  }

  #countLines(): void {
    this.#lines.addNewLine(0);
    for (let at = this.#original.indexOf("\n"); at !== -1; at = this.#original.indexOf("\n", at + 1))
      this.#lines.addNewLine(at + 1);
  }
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
