/**
 * Names of request fields that belong to the gateway under one configuration: policies set or clear them, take credentials from
 * them, or the gateway writes them itself. Many servers cannot tell `x_user` from `X-User` (CGI variables have no dashes, RFC
 * 3875 4.1.18), so a client's field that only looks like one of these would be taken for it.
 */
export class OwnFields {
  readonly #names = new Set<string>();
  readonly #spelledAlike = new Set<string>();
  /** Names without an underscore can look like one of these, too. */
  hasUnderscore = false;

  get empty(): boolean {
    return this.#names.size === 0;
  }

  /** Adds all of another. */
  include(other: OwnFields): void {
    for (const name of other.#names) this.add(name);
  }

  /** `name` is lower-case. */
  add(name: string): void {
    this.#names.add(name);
    this.#spelledAlike.add(dashed(name));
    if (name.includes("_")) this.hasUnderscore = true;
  }

  /** Whether a field (lower-case) is one of these, as it is spelled. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a field (lower-case) is one of these or looks like one. */
  covers(name: string): boolean {
    const spelling = dashed(name);
    return this.#spelledAlike.has(spelling) || spelling.startsWith("x-forwarded-");
  }

  /** Whether a field (lower-case) is none of these but looks like one. */
  imitatedBy(name: string): boolean {
    if (this.has(name)) return false;
    const spelling = dashed(name);
    return this.#spelledAlike.has(spelling) || (spelling !== name && spelling.startsWith("x-forwarded-"));
  }
}

/** One spelling for all names that look alike. */
export function dashed(name: string): string {
  return name.replaceAll("_", "-");
}
