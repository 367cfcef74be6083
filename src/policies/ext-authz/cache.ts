import { BoundedCache } from "../../base/bounded-cache.ts";
import { parseDuration } from "../../base/durations.ts";
import {
  type Activation,
  CelDuration,
  type CelEnvironment,
  CelTimestamp,
  type CelValue,
  type Expression,
  type Scope,
  toJson,
} from "../../cel/index.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import type { ExtAuthz } from "./schema.ts";

interface Entry<AuthzDecision> {
  readonly decision: AuthzDecision;
  /** `performance.now()` ms. */
  readonly until: number;
}

/** Refusals with other statuses may be about something else than the client. */
const KEPT_REFUSALS = new Set([401, 403]);

/** Decisions by key, for their time to live. */
export class DecisionCache<AuthzDecision> {
  readonly #key: readonly Expression[];
  readonly #ttl: number | Expression;
  readonly #entries: BoundedCache<Entry<AuthzDecision>>;

  /** `scope`: what the expressions may read. Throws CelError for those that cannot be used. */
  constructor({ key, ttl, maxEntries }: NonNullable<ExtAuthz["cache"]>, scope: Scope, cel: CelEnvironment) {
    this.#key = key.map((text) => cel.compileExpression(text, scope));
    this.#ttl = parseDuration(ttl) ?? cel.compileExpression(ttl, scope);
    this.#entries = new BoundedCache(maxEntries);
  }

  get expressions(): readonly Expression[] {
    return typeof this.#ttl === "number" ? this.#key : [...this.#key, this.#ttl];
  }

  /** A digest, because what clients send may be long, or secret. undefined = the decision about these variables cannot be kept. */
  keyOf(variables: Activation): string | undefined {
    try {
      const values = this.#key.map((expression) => toJson(expression.evaluate(variables)));
      return secretDigest(JSON.stringify(values)).toString("latin1");
    } catch {
      return undefined;
    }
  }

  get(key: string): AuthzDecision | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > performance.now()) return entry.decision;
    this.#entries.delete(key);
    return undefined;
  }

  /** `refusedWith`: status of a refusal; undefined = it allows. `variables` include the service's answer. */
  put(key: string, decision: AuthzDecision, refusedWith: number | undefined, variables: Activation): void {
    if (refusedWith !== undefined && !KEPT_REFUSALS.has(refusedWith)) return;
    const ttl = this.#ttlOf(variables);
    if (ttl <= 0) return;
    this.#entries.set(key, { decision, until: performance.now() + ttl });
  }

  /** Milliseconds from now; 0 when the expression gives neither a duration nor a time. */
  #ttlOf(variables: Activation): number {
    if (typeof this.#ttl === "number") return this.#ttl;
    try {
      return millisecondsOf(this.#ttl.evaluate(variables));
    } catch {
      return 0;
    }
  }
}

/** Numbers are seconds since 1970, as in the claim `exp`. */
function millisecondsOf(value: CelValue): number {
  if (value instanceof CelDuration) return Number(value.nanos) / 1e6;
  if (value instanceof CelTimestamp) return Number(value.nanos) / 1e6 - Date.now();
  if (typeof value === "bigint" || typeof value === "number") return Number(value) * 1000 - Date.now();
  return 0;
}
