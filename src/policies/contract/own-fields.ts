/**
 * Request fields that the gateway owns under one configuration: policies set or remove them, take credentials from them, or the
 * gateway writes them itself. Many servers cannot distinguish `x_user` from `X-User` (CGI variables have no dashes, RFC 3875,
 * section 4.1.18), so a client could impersonate users with a field that only looks like an owned one.
 */
export class OwnFields {
  readonly #names = new Set<string>();
  readonly #spelledAlike = new Set<string>();
  /** An owned name has `_`, so client fields without one can imitate it too. Otherwise only fields with `_` need the check. */
  hasUnderscore = false;

  get empty(): boolean {
    return this.#names.size === 0;
  }

  /** Adds all names of another set. */
  include(other: OwnFields): void {
    for (const name of other.#names) this.add(name);
  }

  /** `name` is lower-case. */
  add(name: string): void {
    this.#names.add(name);
    this.#spelledAlike.add(dashed(name));
    if (name.includes("_")) this.hasUnderscore = true;
  }

  /** Whether a field (lower-case) is owned, in this exact spelling. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a field (lower-case) is owned or imitates an owned one. `X-Forwarded-*` is always owned. */
  covers(name: string): boolean {
    const spelling = dashed(name);
    return this.#spelledAlike.has(spelling) || spelling.startsWith("x-forwarded-");
  }

  /** Whether a field (lower-case) imitates an owned one without being it. */
  imitatedBy(name: string): boolean {
    if (this.has(name)) return false;
    const spelling = dashed(name);
    return this.#spelledAlike.has(spelling) || (spelling !== name && spelling.startsWith("x-forwarded-"));
  }
}

/** The common spelling of all names that look alike to CGI. */
export function dashed(name: string): string {
  return name.replaceAll("_", "-");
}
