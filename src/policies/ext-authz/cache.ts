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

/** Denials with other statuses, such as 429 or 503, may depend on the moment and not on the client. */
const CACHED_DENIALS = new Set([401, 403]);

/** Caches decisions of one policy in one worker. The time to live may depend on the decision. */
export class DecisionCache<AuthzDecision> {
  readonly #key: readonly Expression[];
  readonly #ttl: number | Expression;
  readonly #entries: BoundedCache<Entry<AuthzDecision>>;

  /** `scope`: what the expressions may read. Throws CelError for one that does not compile. */
  constructor({ key, ttl, maxEntries }: NonNullable<ExtAuthz["cache"]>, scope: Scope, cel: CelEnvironment) {
    this.#key = key.map((text) => cel.compileExpression(text, scope));
    this.#ttl = parseDuration(ttl) ?? cel.compileExpression(ttl, scope);
    this.#entries = new BoundedCache(maxEntries);
  }

  get expressions(): readonly Expression[] {
    return typeof this.#ttl === "number" ? this.#key : [...this.#key, this.#ttl];
  }

  /**
   * A digest, since values of clients may be long or secret. undefined = the decision must not be cached: an expression failed, and
   * without its value different clients would share a key.
   */
  keyOf(variables: Activation): string | undefined {
    try {
      const values = this.#key.map((expression) => toJson(expression.evaluate(variables)));
      return secretDigest(JSON.stringify(values)).toString("latin1");
    } catch {
      return undefined;
    }
  }

  /** The decision that is cached under a key; undefined once it has expired. */
  get(key: string): AuthzDecision | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > performance.now()) return entry.decision;
    this.#entries.delete(key);
    return undefined;
  }

  /** `deniedWith`: status of a denial; undefined = allowed. `variables` include metadata of the decision as `extauthz`. */
  put(key: string, decision: AuthzDecision, deniedWith: number | undefined, variables: Activation): void {
    if (deniedWith !== undefined && !CACHED_DENIALS.has(deniedWith)) return;
    const ttl = this.#ttlOf(variables);
    if (ttl <= 0) return;
    this.#entries.set(key, { decision, until: performance.now() + ttl });
  }

  /** Milliseconds from now; 0, which means not cached, if the expression fails or returns neither a duration nor a time. */
  #ttlOf(variables: Activation): number {
    if (typeof this.#ttl === "number") return this.#ttl;
    try {
      return millisecondsOf(this.#ttl.evaluate(variables));
    } catch {
      return 0;
    }
  }
}

/** Numbers are Unix seconds, as in the claim `exp` of tokens. */
function millisecondsOf(value: CelValue): number {
  if (value instanceof CelDuration) return Number(value.nanos) / 1e6;
  if (value instanceof CelTimestamp) return Number(value.nanos) / 1e6 - Date.now();
  if (typeof value === "bigint" || typeof value === "number") return Number(value) * 1000 - Date.now();
  return 0;
}
