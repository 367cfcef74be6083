import { isObject } from "../../base/fields.ts";
import { type Path, valueAt } from "../../base/paths.ts";
import type { Diagnostic } from "../../translation/problems/diagnostics.ts";
import type { Problem } from "../../translation/problems/problem.ts";
import type { NamedText } from "./config-files.ts";
import { ConfigDocument, type Position } from "./document.ts";

/** A part of a list that several texts have: it begins with the element `start` of the whole. */
interface ListPart {
  readonly document: ConfigDocument;
  readonly start: number;
}

/** Maps by name: an entry belongs to one text. */
const NAMED: ReadonlySet<string> = new Set(["gateways"]);

/**
 * The texts of one configuration, merged: lists of the top level (routes, backends and so on) are appended in the order of the texts, and
 * objects are merged field by field. A setting in two texts is an error. Paths are those in the whole; a problem is reported with the
 * file, position and path of the text that has the value.
 */
export class ConfigSet {
  readonly documents: readonly ConfigDocument[];
  /** Undefined if a text is not an object, which has been reported. */
  readonly value: object | undefined;
  /** Of lists in several texts. */
  readonly #lists = new Map<PropertyKey, ListPart[]>();

  /** At least one text. What is wrong with one of them, or with the whole, is in `diagnostics` afterwards. */
  constructor(texts: readonly NamedText[], env: Readonly<Record<string, string | undefined>>) {
    const values = new Map<string, string>();
    this.documents = texts.map(({ name, text }) => new ConfigDocument(name, text, env, values));
    const parts = this.documents.flatMap((document) => {
      const value = objectIn(document);
      return value === undefined ? [] : [{ document, value }];
    });
    if (parts.length === texts.length) this.value = parts.length === 1 ? parts[0]?.value : this.#merge(parts);
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.documents.flatMap(({ diagnostics }) => diagnostics);
  }

  /** Nothing is wrong; there may be warnings. */
  get ok(): boolean {
    return this.documents.every(({ ok }) => ok);
  }

  /** Adds a problem with the value at `path`; `key` points at the key instead of the value. */
  report(path: Path, problem: Problem, key?: string): void {
    const { document, path: own } = this.#find(key === undefined ? path : [...path, key]);
    document.report(key === undefined ? own : own.slice(0, -1), problem, key, (related) => this.#find(related));
  }

  /** As `ConfigDocument.reportInside`. */
  reportInside(path: Path, text: string, position: Position, problem: Problem): boolean {
    const { document, path: own } = this.#find(path);
    return document.reportInside(own, text, position, problem);
  }

  /** Adds a problem that has no place in a text, such as one of the environment. */
  reportElsewhere(problem: Problem): void {
    this.documents[0]?.reportElsewhere(problem);
  }

  /** Where the value at `path` is written: its key, if it has one. */
  placeOf(path: Path): Position & { readonly file: string } {
    const { document, path: own } = this.#find(path);
    return { file: document.file, ...document.placeOf(own) };
  }

  /** The file that has the value at `path`. */
  fileOf(path: Path): string {
    return this.#find(path).document.file;
  }

  #merge(parts: readonly { readonly document: ConfigDocument; readonly value: object }[]): object {
    const whole: Record<string, unknown> = {};
    for (const { document, value } of parts)
      for (const [field, inner] of Object.entries(value)) {
        const before = whole[field];
        if (Array.isArray(inner) && (before === undefined || before === null || Array.isArray(before)))
          whole[field] = this.#append(document, field, before ?? [], inner);
        else whole[field] = this.#mergeField(document, [field], before, inner);
      }
    return whole;
  }

  #append(document: ConfigDocument, field: string, before: readonly unknown[], added: readonly unknown[]): unknown[] {
    const list = this.#lists.get(field) ?? [];
    this.#lists.set(field, list);
    list.push({ document, start: before.length });
    return before.concat(added);
  }

  #mergeField(document: ConfigDocument, path: Path, before: unknown, value: unknown): unknown {
    if (before === undefined || before === null) return value;
    if (value === null) return before;
    const [field = "", ...rest] = path;
    const isEntry = rest.length === 1 && NAMED.has(String(field));
    if (!isObject(before) || !isObject(value) || isEntry) {
      const related = [{ path, message: "the first" }];
      const message = isEntry ? "is in two files; rename one of the two" : "is set in two files; keep one of the two";
      document.report(path.slice(0, -1), { message, related }, String(path.at(-1)), (first) => this.#find(first));
      return before;
    }
    const merged: Record<string, unknown> = { ...before };
    for (const [key, inner] of Object.entries(value))
      merged[key] = this.#mergeField(document, [...path, key], merged[key], inner);
    return merged;
  }

  /** The document that has the value, or the most of its path, and the path in it. */
  #find(path: Path): { readonly document: ConfigDocument; readonly path: Path } {
    const [first] = this.documents as readonly [ConfigDocument];
    if (this.documents.length === 1) return { document: first, path };
    const [field = "", index, ...rest] = path;
    const parts = this.#lists.get(field);
    if (parts !== undefined && typeof index === "number") {
      const part = parts.findLast(({ start }) => start <= index) ?? { document: first, start: 0 };
      return { document: part.document, path: [field, index - part.start, ...rest] };
    }
    for (let end = path.length; end > 0; end--) {
      const known = path.slice(0, end);
      // Null counts as absent where another text has a value.
      const document =
        this.documents.find(({ value }) => (valueAt(value, known) ?? undefined) !== undefined) ??
        this.documents.find(({ value }) => valueAt(value, known) === null);
      if (document !== undefined) return { document, path };
    }
    return { document: first, path };
  }
}

/** The value of a text that has no syntax errors; what is no object is reported. */
function objectIn(document: ConfigDocument): object | undefined {
  const { value } = document;
  if (!document.ok) return undefined;
  if (value === null || value === undefined)
    document.reportElsewhere({ message: "is empty; write {} for a file without settings" });
  else if (isObject(value)) return value;
  else document.report([], { message: "a configuration is an object with fields such as binds or gateways" });
  return undefined;
}
