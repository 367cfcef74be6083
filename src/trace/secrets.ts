import { SensitiveNames, SensitiveParameters } from "../base/sensitive-names.ts";
import { REDACTED, shownHeaders, shownSearch, shownUrls } from "./redaction.ts";

/** Characters from which on a hidden value is looked for in other places: shorter ones would be found in words. */
const MIN_SECRET = 8;
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
    return shownHeaders(list, this.#headers, this.#reveal ? undefined : this.#parameters);
  }

  /** The hidden values of these headers are not shown anywhere else either. */
  remember(list: readonly string[]): void {
    for (let i = 0; i < list.length; i += 2)
      if (this.#headers.has(list[i] as string)) this.#remember(list[i + 1] as string);
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
    let shown = text;
    for (const value of this.#values) shown = shown.replaceAll(value, REDACTED);
    return this.#reveal ? shown : shownUrls(shown, this.#parameters);
  }

  /** The whole value, and its parts: `Bearer <token>`, `name=<value>; name=<value>`. */
  #remember(value: string): void {
    const parts = [value, ...value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf("=") + 1))];
    const scheme = /^[\w-]+ +(\S.*)$/.exec(value)?.[1];
    if (scheme !== undefined) parts.push(scheme);
    for (const part of parts) if (part.length >= MIN_SECRET) this.#values.add(part);
  }
}
