import { parseDuration } from "../../base/durations.ts";
import { CelDuration, compileExpression, type Expression, toJson } from "../../cel/index.ts";
import type { ExtAuthz } from "../../ir/policies.ts";
import type { PolicyContext } from "../types.ts";
import type { Verdict } from "./verdict.ts";

interface Entry {
  readonly verdict: Verdict;
  /** `performance.now()` ms. */
  readonly until: number;
}

/** Refusals with other statuses may be about something else than the client. */
const KEPT_REFUSALS = new Set([401, 403]);

/** Verdicts by key, for their time to live; the oldest goes when there is no room. */
export class VerdictCache {
  readonly #key: readonly Expression[];
  readonly #ttl: number | Expression;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, Entry>();

  /** Throws CelError for expressions that cannot be used. */
  constructor({ key, ttl, maxEntries }: NonNullable<ExtAuthz["cache"]>) {
    this.#key = key.map((text) => compileExpression(text, "request"));
    this.#ttl = parseDuration(ttl) ?? compileExpression(ttl, "request");
    this.#maxEntries = maxEntries;
  }

  get expressions(): readonly Expression[] {
    return typeof this.#ttl === "number" ? this.#key : [...this.#key, this.#ttl];
  }

  /** undefined = this request's verdict cannot be kept. */
  keyOf({ variables }: PolicyContext): string | undefined {
    try {
      return JSON.stringify(this.#key.map((expression) => toJson(expression.evaluate(variables))));
    } catch {
      return undefined;
    }
  }

  get(key: string): Verdict | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > performance.now()) return entry.verdict;
    this.#entries.delete(key);
    return undefined;
  }

  put(key: string, verdict: Verdict, context: PolicyContext): void {
    if (!verdict.allowed && !KEPT_REFUSALS.has(verdict.reply?.status ?? 403)) return;
    const ttl = this.#ttlOf(context);
    if (ttl <= 0) return;
    this.#entries.delete(key);
    this.#entries.set(key, { verdict, until: performance.now() + ttl });
    const [oldest] = this.#entries.size > this.#maxEntries ? this.#entries.keys() : [];
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Milliseconds; 0 when the expression gives no duration. */
  #ttlOf({ variables }: PolicyContext): number {
    if (typeof this.#ttl === "number") return this.#ttl;
    try {
      const value = this.#ttl.evaluate(variables);
      return value instanceof CelDuration ? Number(value.nanos) / 1e6 : 0;
    } catch {
      return 0;
    }
  }
}
