import type { Finding, Place } from "./converted.ts";

/** What is found while a configuration is converted and written. */
export class Findings {
  readonly #found: Finding[];

  constructor(found: readonly Finding[] = []) {
    this.#found = [...found];
  }

  find(severity: Finding["severity"], { file, line, column }: Place, message: string, remedy?: string): void {
    this.#found.push({ file, line, column, severity, message, ...(remedy !== undefined && { remedy }) });
  }

  /** In the order of the lines; each once, although a part of the input may be read several times. */
  sorted(): readonly Finding[] {
    const seen = new Set<string>();
    return [...this.#found]
      .sort((a, b) => (a.file === b.file ? a.line - b.line || a.column - b.column : 0))
      .filter((each) => !seen.has(JSON.stringify(each)) && seen.add(JSON.stringify(each)));
  }
}

/** The text cannot be understood from this place on. */
export class SyntaxProblem extends Error {
  readonly place: Place;

  constructor(place: Place, message: string) {
    super(message);
    this.place = place;
  }
}
