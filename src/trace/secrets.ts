import { isDeepStrictEqual } from "node:util";
import { cookiePairs } from "../base/cookies.ts";
import type { ShownValues } from "../base/errors.ts";
import { readableValue } from "../base/header-text.ts";
import { REDACTED, redactTarget, redactUrls } from "../base/redaction.ts";
import type { Names } from "../base/sensitive-names.ts";
import type { InputValue, Observation, PartValue } from "../cel/index.ts";
import type { ExpressionResult, PartResult } from "./events.ts";
import { redactFields, redactHeaders } from "./redaction.ts";

/** Minimum length, in characters, of a secret that is searched for in other values: shorter ones would match parts of words. */
const MIN_SECRET = 8;
/** Characters of a rule input that are shown. */
const MAX_INPUT = 200;
/** Levels of nesting that are shown. */
const MAX_DEPTH = 20;

/**
 * Redacts the secrets of one request in its trace and in what expressions of telemetry yield: values of headers and parameters whose
 * names mark them as secret, and the same values wherever they reappear: in claims, in metadata, in the inputs of rules.
 */
export class RequestSecrets implements ShownValues {
  readonly #reveal: boolean;
  readonly #headers: Names;
  readonly #parameters: Names;
  readonly #hidden = { header: new Set<string>(), "query parameter": new Set<string>() };
  readonly #values = new Set<string>();

  /** `reveal`: redact only what policies `hide`. `headers` in lower case. */
  constructor(reveal: boolean, headers: Names, parameters: Names) {
    const { header, "query parameter": parameter } = this.#hidden;
    this.#reveal = reveal;
    this.#headers = reveal ? header : { has: (name) => headers.has(name) || header.has(name) };
    this.#parameters = reveal ? parameter : { has: (name) => parameters.has(name) || parameter.has(name) };
  }

  /** Redacts a secret of the gateway itself, from now on. */
  hide(place: "header" | "query parameter", name: string): void {
    this.#hidden[place].add(name);
  }

  headers(list: readonly string[]): Record<string, string> {
    this.remember(list);
    const redacted = redactHeaders(list, this.#headers, this.#reveal ? undefined : this.#parameters);
    if (this.#values.size > 0)
      for (const [name, value] of Object.entries(redacted)) redacted[name] = this.#withoutValues(value);
    return redacted;
  }

  /** The same list if it contains no secrets, otherwise a redacted copy. Does not search for remembered values. */
  fields(list: readonly string[]): readonly string[] {
    return redactFields(list, this.#headers, this.#reveal ? undefined : this.#parameters);
  }

  /** Remembers the secret values of these headers, to redact them everywhere else too. */
  remember(list: readonly string[]): void {
    for (let i = 0; i < list.length; i += 2) {
      const name = list[i] as string;
      if (this.#headers.has(name)) this.#remember(name, list[i + 1] as string);
    }
  }

  /** Headers (lower-case) whose values are secret. */
  get hiddenHeaders(): Names {
    return this.#headers;
  }

  /** Redacts a path, a query with its question mark, or both. */
  target(target: string): string {
    return redactTarget(target, this.#parameters);
  }

  /** Replaces the properties with secret names in plain objects and lists; other objects, such as dates, stay as they are. */
  named(value: unknown, depth = 0): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return depth === MAX_DEPTH ? "…" : value.map((each) => this.named(each, depth + 1));
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) return value;
    if (depth === MAX_DEPTH) return "…";
    const shown = Object.getOwnPropertyDescriptors(value) as Record<string, PropertyDescriptor>;
    for (const [name, property] of Object.entries(shown)) {
      // An opaque value, such as the non-enumerable `jwt.rawToken`, shows nothing by itself.
      const hidden = property.value !== null && typeof property.value !== "object" && this.#headers.has(name);
      property.value = hidden ? REDACTED : this.named(property.value, depth + 1);
    }
    return Object.create(prototype, shown);
  }

  /** Redacts JSON data: by property name, in URLs, and values that a redacted header has. */
  data(value: unknown): unknown {
    return this.#data(value, true, 0);
  }

  /** Like `data`, but not by property name: the names in a policy's details are the policy's own, and name no secrets. */
  details(value: unknown): unknown {
    return this.#data(value, false, 0);
  }

  /** What an expression read and computed. */
  observed({ needs, whole, inputs, parts }: Observation): Omit<ExpressionResult, "text"> {
    const { value, error } = whole === undefined ? {} : this.part(whole);
    return {
      ...(needs !== undefined && { needs }),
      ...(value !== undefined && { value }),
      ...(error !== undefined && { error }),
      ...(inputs.length > 0 && { inputs: this.inputs(inputs) }),
      ...(parts.length > 0 && { values: parts.map((part) => this.part(part)) }),
    };
  }

  inputs(inputs: readonly InputValue[]): Record<string, unknown> {
    return Object.fromEntries(inputs.map(({ text, path, value }) => [text, this.input(path, value)]));
  }

  /** The value at a path of an expression, below its variable; long values are truncated. */
  input(path: readonly string[], value: unknown): unknown {
    if (value !== null && path.some((name) => this.#headers.has(name))) return REDACTED;
    const redacted = this.data(value);
    const text = typeof redacted === "string" ? redacted : JSON.stringify(redacted);
    return text.length <= MAX_INPUT ? redacted : `${text.slice(0, MAX_INPUT)}…`;
  }

  /** A part of an expression. What is computed from a value that is not shown as it is, is not shown either, unless it is true or false. */
  part({ from, to, result, reads, readsMore }: PartValue): PartResult {
    if ("error" in result) return { from, to, error: this.#text(result.error) };
    const isOpen = !readsMore && reads.every(({ path, value }) => isDeepStrictEqual(this.input(path, value), value));
    const isPlain = typeof result.value === "boolean" || result.value === null;
    return { from, to, value: isPlain ? result.value : isOpen ? this.input([], result.value) : REDACTED };
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
    const redacted = this.#withoutValues(text);
    return this.#reveal ? redacted : redactUrls(redacted, this.#parameters);
  }

  #withoutValues(text: string): string {
    let redacted = text;
    for (const value of this.#values) redacted = redacted.replaceAll(value, REDACTED);
    return redacted;
  }

  /** Remembers the whole value and its secret parts: `Bearer <token>`, `name=<value>; name=<value>`. */
  #remember(name: string, value: string): void {
    const cookies = cookiePairs(value);
    // In Set-Cookie, attributes such as Path follow the first pair.
    if (name === "set-cookie") cookies.length = Math.min(1, cookies.length);
    const parts = [value, ...cookies.map((cookie) => cookie.value ?? cookie.name)];
    const scheme = /^[\w-]+ +(\S.*)$/.exec(value)?.[1];
    if (scheme !== undefined) parts.push(scheme);
    // Expressions and reasons have the text that the bytes stand for.
    for (const part of parts.flatMap((each) => [each, readableValue(each)]))
      if (part.length >= MIN_SECRET) this.#values.add(part);
  }
}
