import { cookiePairs } from "../base/cookies.ts";
import { SensitiveNames, SensitiveParameters } from "../base/sensitive-names.ts";
import { REDACTED, shownHeaders, shownSearch, shownUrls } from "./redaction.ts";

/** Characters from which on a hidden value is looked for in other places: shorter ones would be found in words. */
const MIN_SECRET = 8;
/** Characters of a value that a rule has compared. */
const MAX_INPUT = 200;
/** Levels of a value that are shown: what expressions make may be deep. */
const MAX_DEPTH = 20;

/**
 * What the trace of one request does not show: values of headers and of parameters whose names say that they are secret, and
 * those same values where they turn up again: in claims, in metadata, in what a comparison saw.
 */
export class TraceSecrets {
  readonly #reveal: boolean;
  readonly #headers: Set<string>;
  readonly #parameters: Set<string>;
  readonly #values = new Set<string>();

  /** `reveal`: only what policies hide themselves. `headers` in lower case. */
  constructor(reveal: boolean, headers: Iterable<string>, parameters: Iterable<string>) {
    this.#reveal = reveal;
    this.#headers = reveal ? new Set() : new SensitiveNames(headers);
    this.#parameters = reveal ? new Set() : new SensitiveParameters(parameters);
  }

  /** Hides a secret of the gateway itself from now on. */
  hide(place: "header" | "query parameter", name: string): void {
    (place === "header" ? this.#headers : this.#parameters).add(name);
  }

  headers(list: readonly string[]): Record<string, string> {
    this.remember(list);
    const shown = shownHeaders(list, this.#headers, this.#reveal ? undefined : this.#parameters);
    if (this.#values.size > 0)
      for (const [name, value] of Object.entries(shown)) shown[name] = this.#withoutValues(value);
    return shown;
  }

  /** The hidden values of these headers are not shown anywhere else either. */
  remember(list: readonly string[]): void {
    for (let i = 0; i < list.length; i += 2) {
      const name = list[i] as string;
      if (this.#headers.has(name)) this.#remember(name, list[i + 1] as string);
    }
  }

  search(search: string): string {
    return shownSearch(search, this.#parameters);
  }

  /** JSON data with every secret replaced: by the name of its property, in URLs, or because a hidden header has it. */
  data(value: unknown): unknown {
    return this.#data(value, true, 0);
  }

  /** As `data`, of what a policy says about itself: names of its properties are the policy's words, not those of secrets. */
  details(value: unknown): unknown {
    return this.#data(value, false, 0);
  }

  /** The value of an expression's path, below its variable; a long one is cut. */
  input(path: readonly string[], value: unknown): unknown {
    if (value !== null && path.some((name) => this.#headers.has(name))) return REDACTED;
    const shown = this.data(value);
    const text = typeof shown === "string" ? shown : JSON.stringify(shown);
    return text.length <= MAX_INPUT ? shown : `${text.slice(0, MAX_INPUT)}…`;
  }

  #data(value: unknown, byName: boolean, depth: number): unknown {
    if (typeof value === "string") return this.#text(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth === MAX_DEPTH) return "…";
    if (Array.isArray(value)) return value.map((each) => this.#data(each, byName, depth + 1));
    const entries = Object.entries(value).map(([name, each]) => {
      const hidden = byName && each !== null && this.#headers.has(name);
      return [name, hidden ? REDACTED : this.#data(each, byName, depth + 1)];
    });
    return Object.fromEntries(entries);
  }

  #text(text: string): string {
    const shown = this.#withoutValues(text);
    return this.#reveal ? shown : shownUrls(shown, this.#parameters);
  }

  #withoutValues(text: string): string {
    let shown = text;
    for (const value of this.#values) shown = shown.replaceAll(value, REDACTED);
    return shown;
  }

  /** The whole value, and the secret parts of it: `Bearer <token>`, `name=<value>; name=<value>`. */
  #remember(name: string, value: string): void {
    const cookies = cookiePairs(value);
    // What follows in a Set-Cookie are attributes, such as a path.
    if (name === "set-cookie") cookies.length = Math.min(1, cookies.length);
    const parts = [value, ...cookies.map((cookie) => cookie.value ?? cookie.name)];
    const scheme = /^[\w-]+ +(\S.*)$/.exec(value)?.[1];
    if (scheme !== undefined) parts.push(scheme);
    for (const part of parts) if (part.length >= MIN_SECRET) this.#values.add(part);
  }
}
