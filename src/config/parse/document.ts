import { type Document, parseDocument } from "yaml";
import { formatPath, type Path } from "../../base/paths.ts";
import { REDACTED, redactUrls } from "../../base/redaction.ts";
import type { Diagnostic, RelatedPlace } from "../../translation/problems/diagnostics.ts";
import { isSecret, type Problem } from "../../translation/problems/problem.ts";
import { type Expanded, expandEnv } from "./env.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import { DocumentPositions, Lines, PlainPositions, type Positions } from "./positions.ts";
import { linesWithoutSecrets, mayHoldSecret } from "./secret-lines.ts";
import { aliasProblem, syntaxProblems, unusableKeys } from "./yaml-errors.ts";

/** Values from the environment that are at least this long are named instead of shown. */
const SECRET_LENGTH = 8;
/** Limit of alias expansions, counting nested ones by multiplication; far above what people write. */
const MAX_ALIASES = 10_000;
/** `__proto__`, also where a quoted key spells an underscore as `\x5f`. */
const PROTO = /__proto__|\\[xuU]0*5f/;
const MAX_SOURCE = 200;
/** A line that begins with a field, after which a space or nothing follows: unlike `user:hash` of a password file, or a line of a key. */
const FIELD_LINE = /^\s*(?:-\s+)*["']?[\w.-]+["']?\s*:(?:\s|$)/;
/** The configuration may list more names of secret headers, but it has errors. */
const NO_NAMES: ReadonlySet<string> = new Set();

/** Counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * One configuration text, parsed once, that can locate each of its values. Positions are looked up only when there
 * is something to report: to keep them for every value takes most of the time and memory of a parse.
 */
export class ConfigDocument {
  readonly file: string;
  readonly diagnostics: Diagnostic[] = [];
  /** The text as plain data; undefined when it could not be parsed. */
  readonly value: unknown;
  readonly #text: string;
  readonly #expanded: Expanded;
  /** Values of the environment by their names. */
  readonly #values: Map<string, string>;
  /** The complete parser's document, if only that could read the text. */
  readonly #document: Document.Parsed | undefined;
  /** No line of the text has a secret. Otherwise problems found before it is parsed show only lines that are fields. */
  readonly #isPublic: boolean;
  #lines: Lines | undefined;
  /** The lines without secrets: a value may be one because of the name in the line before it. */
  #shown: readonly string[] | undefined;
  #positions: Positions | undefined;

  /**
   * Unset variables and syntax errors are in `diagnostics` afterwards. `values` collects what came from the environment: messages show none
   * of it, also where several texts share the map.
   */
  constructor(
    file: string,
    text: string,
    env: Readonly<Record<string, string | undefined>>,
    values = new Map<string, string>(),
  ) {
    this.file = file;
    this.#text = text;
    this.#expanded = expandEnv(text, env);
    this.#values = values;
    for (const [name, value] of this.#expanded.values) values.set(name, value);
    this.#isPublic = !mayHoldSecret(text);
    for (const { offset, message } of this.#expanded.problems) this.#add(offset, "", { message }, "field");
    // The empty text in place of an unset variable would cause misleading errors.
    if (this.diagnostics.length > 0) return;
    const plain = readPlainYaml(this.#expanded.text);
    if (plain === undefined) {
      this.#document = parseDocument(this.#expanded.text, { prettyErrors: false, merge: true });
      this.value = this.#check(this.#document);
    } else this.value = plain.value;
  }

  /**
   * Adds a problem with the value at `path`; `key` points at the key instead of the value. `resolve` finds the documents of related places,
   * and their paths there.
   */
  report(
    path: Path,
    problem: Problem,
    key?: string,
    resolve: (related: Path) => { readonly document: ConfigDocument; readonly path: Path } = (related) => ({
      document: this,
      path: related,
    }),
  ): void {
    const shown = key === undefined ? path : [...path, key];
    const offset = this.#expanded.toOriginal(this.#where().offsetOf(path, key));
    const related = (problem.related ?? []).map(({ path: other, message }): RelatedPlace => {
      const { document, path: there } = resolve(other);
      return {
        ...(document !== this && { file: document.file }),
        ...document.placeOf(there),
        path: this.#withoutValues(formatPath(there)),
        message: this.#withoutValues(message),
      };
    });
    this.#add(offset, formatPath(shown), problem, isSecret(shown) ? "hidden" : "line", related);
  }

  /**
   * Adds a problem inside the text at `path`, at a line and column (from 1) of that text. False, with nothing added, when it
   * is not written line by line, as a literal block (`|`) is.
   */
  reportInside(path: Path, text: string, { line, column }: Position, problem: Problem): boolean {
    const block = this.#where().literalBlockAt(path);
    if (block === undefined) return false;
    const offset = offsetInBlock(this.#expanded.text, block, text, line);
    if (offset === undefined) return false;
    this.#add(this.#expanded.toOriginal(offset + column - 1), formatPath(path), problem, "line");
    return true;
  }

  /** Where the value at `path` is written: its key, if it has one. */
  placeOf(path: Path): Position {
    const key = path.at(-1);
    const where = this.#where();
    const offset = typeof key === "string" ? where.offsetOf(path.slice(0, -1), key) : where.offsetOf(path, undefined);
    this.#lines ??= new Lines(this.#text);
    return this.#lines.place(this.#expanded.toOriginal(offset));
  }

  /** Adds a problem that has no place in the text, such as one of the environment. */
  reportElsewhere(problem: Problem): void {
    const { warning = false, note = false, cause: _cause, related: _related, lint: _lint, ...rest } = problem;
    const severity = note ? "note" : warning ? "warning" : "error";
    this.diagnostics.push({ severity, file: this.file, line: 0, column: 0, path: "", ...rest });
  }

  /** Nothing is wrong; there may be warnings. */
  get ok(): boolean {
    return !this.diagnostics.some((diagnostic) => diagnostic.severity === "error");
  }

  /** The value of a document without problems; problems are added. */
  #check(document: Document.Parsed): unknown {
    for (const { offset, message } of syntaxProblems(document, this.#expanded.text))
      this.#add(this.#expanded.toOriginal(offset), "", { message }, "field");
    if (PROTO.test(this.#expanded.text))
      for (const { offset, message } of unusableKeys(document))
        this.#add(this.#expanded.toOriginal(offset), "", { message }, "field");
    if (this.diagnostics.length > 0) return undefined;
    try {
      return document.toJS({ maxAliasCount: MAX_ALIASES });
    } catch (error) {
      const { offset, message } = aliasProblem(document, error);
      this.#add(this.#expanded.toOriginal(offset), "", { message }, "field");
      return undefined;
    }
  }

  #where(): Positions {
    this.#positions ??=
      this.#document === undefined ? new PlainPositions(this.#expanded.text) : new DocumentPositions(this.#document);
    return this.#positions;
  }

  #add(
    offset: number,
    path: string,
    { warning = false, note = false, ...problem }: Problem,
    show: "line" | "hidden" | "field",
    related: readonly RelatedPlace[] = [],
  ): void {
    this.#lines ??= new Lines(this.#text);
    this.#shown ??= linesWithoutSecrets(this.#text.replaceAll("\r\n", "\n"), NO_NAMES);
    const { line, column } = this.#lines.place(offset);
    const source = column > MAX_SOURCE ? undefined : this.#excerpt(line, column, show);
    this.diagnostics.push({
      severity: note ? "note" : warning ? "warning" : "error",
      file: this.file,
      line,
      column,
      path: this.#withoutValues(path),
      message: this.#withoutValues(problem.message),
      ...(problem.remedy !== undefined && { remedy: this.#withoutValues(problem.remedy) }),
      ...(problem.lint !== undefined && { lint: problem.lint.code }),
      ...(related.length > 0 && { related }),
      ...(problem.expected !== undefined && { expected: this.#withoutValues(problem.expected) }),
      ...(problem.suggestion !== undefined && { suggestion: this.#withoutValues(problem.suggestion) }),
      ...(problem.invalidCertificate !== undefined && { invalidCertificate: problem.invalidCertificate }),
      ...(source !== undefined && { source: source.slice(0, MAX_SOURCE) }),
    });
  }

  /**
   * The line without what may be secret. undefined = the column is in what is left out, nothing else is left, or the line may not be shown: `hidden` shows only
   * lines of which something is left out, as for a value that is secret; `field` is for a text that cannot be parsed, of which a line that
   * is no field may belong to a secret above it.
   */
  #excerpt(line: number, column: number, show: "line" | "hidden" | "field"): string | undefined {
    const source = this.#lines?.line(line);
    const shown = this.#shown?.[line - 1];
    if (source === undefined || shown === undefined) return undefined;
    if (show === "hidden" && shown === source) return undefined;
    if (show === "field" && !this.#isPublic && !(FIELD_LINE.test(source) && this.#followsShown(line))) return undefined;
    if (shown.trim() === REDACTED || source.slice(0, column - 1) !== shown.slice(0, column - 1)) return undefined;
    return shown;
  }

  /** Whether all of the last line before `line` that is not empty may be shown: with a wrong indentation, a secret may go on in the next one. */
  #followsShown(line: number): boolean {
    for (let before = line - 1; before > 0; before--) {
      const source = this.#lines?.line(before) ?? "";
      if (source.trim() !== "") return this.#shown?.[before - 1] === source;
    }
    return true;
  }

  /** Values from the environment may be secrets: replaces them with the names of their variables. Secrets in URLs are redacted. */
  #withoutValues(text: string): string {
    let shown = text;
    for (const [name, value] of this.#values)
      if (value.length >= SECRET_LENGTH) shown = shown.replaceAll(value, () => `\${${name}}`);
    return redactUrls(shown);
  }
}

/**
 * Where line `line` of a literal block begins, its indentation left out; undefined when the block does not look like its
 * text. `header` is the offset of the `|`; each line of the text is one of the source.
 */
function offsetInBlock(source: string, header: number, text: string, line: number): number | undefined {
  let start = header;
  for (let i = 0; i < line; i++) {
    start = source.indexOf("\n", start) + 1;
    if (start === 0) return undefined;
  }
  const end = source.indexOf("\n", start);
  const written = source.slice(start, end === -1 ? undefined : end).replace(/\r$/, "");
  const wanted = text.split("\n")[line - 1] ?? "";
  return written.endsWith(wanted) ? start + written.length - wanted.length : undefined;
}
