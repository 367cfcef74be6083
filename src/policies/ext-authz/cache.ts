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
import type { CalloutHead } from "../../upstream/callouts/callout.ts";
import { secretDigest } from "../shared/credentials/secret-digest.ts";
import type { ExtAuthz } from "./schema.ts";

interface CachedAnswer<Answer> {
  readonly answer: Answer;
  readonly bytes: number;
  /** `performance.now()` ms. */
  readonly until: number;
}

/** Denials with other statuses, such as 429 or 503, may depend on the moment and not on the client. */
const CACHED_DENIALS = new Set([401, 403]);
/** Bytes of the responses that one cache of one worker holds. Services may repeat client data in them. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Fields that differ for every request and say nothing about the client: with them in the key, there would be no cache hits. */
const PER_REQUEST: ReadonlySet<string> = new Set(["x-request-id", "traceparent", "tracestate"]);

/**
 * Caches the responses of the service for one policy in one worker. A key is a digest of everything that the service is sent, so requests
 * share a decision only if the service could not tell them apart; `cache.key` adds to it. Results of expressions over a response are not
 * cached, since they may read more of a request than the service is sent.
 */
export class AnswerCache<Answer> {
  readonly #key: readonly Expression[];
  readonly #ttl: number | Expression;
  readonly #ignored: ReadonlySet<string>;
  readonly #entries: BoundedCache<CachedAnswer<Answer>>;

  /** `scope`: what the expressions may read. Throws CelError for one that does not compile. */
  constructor({ key, ttl, maxEntries, ignore }: NonNullable<ExtAuthz["cache"]>, scope: Scope, cel: CelEnvironment) {
    this.#key = key.map((text) => cel.compileExpression(text, scope));
    this.#ttl = parseDuration(ttl) ?? cel.compileExpression(ttl, scope);
    this.#ignored = new Set(ignore);
    this.#entries = new BoundedCache(maxEntries, MAX_BYTES, ({ bytes }) => bytes);
  }

  get expressions(): readonly Expression[] {
    return typeof this.#ttl === "number" ? this.#key : [...this.#key, this.#ttl];
  }

  /** For one call to the service. undefined = the response must not be cached: an expression of the key has failed. */
  lookup(variables: Activation): Lookup<Answer> | undefined {
    let added: string;
    try {
      added = JSON.stringify(this.#key.map((expression) => toJson(expression.evaluate(variables))));
    } catch {
      return undefined;
    }
    const [ignored, entries] = [this.#ignored, this.#entries];
    return new Lookup(ignored, added, entries, (now) => this.#ttlOf(now));
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

/** One call to the service. */
export class Lookup<Answer> {
  readonly #ignored: ReadonlySet<string>;
  /** The values of `cache.key`. */
  readonly #added: string;
  readonly #entries: BoundedCache<CachedAnswer<Answer>>;
  readonly #ttlOf: (variables: Activation) => number;
  #key: string | undefined;
  /** The response is from the cache. */
  found = false;

  constructor(
    ignored: ReadonlySet<string>,
    added: string,
    entries: BoundedCache<CachedAnswer<Answer>>,
    ttlOf: (variables: Activation) => number,
  ) {
    this.#ignored = ignored;
    this.#added = added;
    this.#entries = entries;
    this.#ttlOf = ttlOf;
  }

  /** Whether a part that `cache.ignore` can name is left out of the key. */
  ignores(part: string): boolean {
    return this.#ignored.has(part);
  }

  /** Whether a header field (lower-case) is left out of the key. */
  ignoresHeader(name: string): boolean {
    return PER_REQUEST.has(name) || this.ignores(`headers.${name}`);
  }

  /**
   * The cached response to the same call, if it has not expired. `sent`: the head of the call after all policies of the service, which may
   * have added the client's credentials; `message`: that of a gRPC call, without what is left out of the key.
   */
  recall(sent: CalloutHead, message?: Uint8Array): Answer | undefined {
    // A digest, since client data may be long or secret.
    const [head, body] = this.#keyed(sent);
    this.#key = secretDigest(this.#added, head, message ?? body).toString("latin1");
    const entry = this.#entries.get(this.#key);
    if (entry === undefined) return undefined;
    this.found = entry.until > performance.now();
    if (this.found) return entry.answer;
    this.#entries.delete(this.#key);
    return undefined;
  }

  /** The parts that distinguish calls to the service: the head as text, and the body. */
  #keyed(sent: CalloutHead): readonly [head: string, body: Uint8Array] {
    const { method, scheme, authority, path, search, version, headers, body = NO_BYTES, ...others } = sent;
    // A new field of calls must become part of the key: until it does, this does not compile.
    others satisfies Record<string, never>;
    const fields: string[] = [];
    for (let i = 0; i < headers.length; i += 2)
      if (!this.ignoresHeader(headers[i] as string)) fields.push(headers[i] as string, headers[i + 1] as string);
    const target = this.ignores("path") ? "" : this.ignores("query") ? path : path + search;
    const line = [this.ignores("method") ? "" : method, scheme, authority, target, version];
    return [JSON.stringify([line, fields]), this.ignores("body") ? NO_BYTES : body];
  }

  /**
   * Stores the response of the service. `bytes`: its size; `deniedWith`: status of a denial, undefined = allowed. `variables` include
   * metadata of the decision as `extauthz`.
   */
  keep(answer: Answer, bytes: number, deniedWith: number | undefined, variables: Activation): void {
    if (this.#key === undefined || this.found) return;
    if (deniedWith !== undefined && !CACHED_DENIALS.has(deniedWith)) return;
    const ttl = this.#ttlOf(variables);
    if (ttl > 0) this.#entries.set(this.#key, { answer, bytes, until: performance.now() + ttl });
  }
}

const NO_BYTES = new Uint8Array(0);

/** Numbers are Unix seconds, as in the claim `exp` of tokens. */
function millisecondsOf(value: CelValue): number {
  if (value instanceof CelDuration) return Number(value.nanos) / 1e6;
  if (value instanceof CelTimestamp) return Number(value.nanos) / 1e6 - Date.now();
  if (typeof value === "bigint" || typeof value === "number") return Number(value) * 1000 - Date.now();
  return 0;
}
