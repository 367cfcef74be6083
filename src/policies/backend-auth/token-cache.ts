import { BoundedCache } from "../../base/bounded-cache.ts";
import type { TokenCache as Config } from "../schema/token-endpoint.ts";
import type { IssuedToken } from "./token-endpoint.ts";

/** Milliseconds before its expiry at which a token is no longer used: it must still be valid when the backend verifies it. */
const MARGIN = 15_000;

interface Kept {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/**
 * Caches tokens of one policy in one worker until they expire. Concurrent requests for the same token share one exchange: otherwise a
 * cold cache would send one call per request to the token endpoint.
 */
export class TokenCache {
  readonly #defaultTtl: number;
  readonly #kept: BoundedCache<Kept> | undefined;
  readonly #underWay = new Map<string, Promise<string>>();

  constructor({ maxEntries, defaultTtl }: Config) {
    this.#defaultTtl = defaultTtl;
    this.#kept = maxEntries === 0 ? undefined : new BoundedCache(maxEntries);
  }

  /** `notAfter`: Unix milliseconds, the expiry of the token that is exchanged; the new one must not outlive it. Failures are not cached. */
  async get(key: string, notAfter: number, ask: () => Promise<IssuedToken>): Promise<string> {
    const kept = this.#kept;
    if (kept === undefined) return (await ask()).token;
    const known = kept.get(key);
    if (known !== undefined && Date.now() < known.until) return known.token;
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const asked = ask()
      .then(({ token, lifetime = this.#defaultTtl }) => {
        const until = Math.min(Date.now() + lifetime, notAfter) - MARGIN;
        if (Date.now() < until) kept.set(key, { token, until });
        return token;
      })
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, asked);
    return asked;
  }
}
