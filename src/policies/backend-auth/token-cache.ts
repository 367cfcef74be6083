import { BoundedCache } from "../../base/bounded-cache.ts";
import type { IssuedToken } from "./token-endpoint.ts";
import type { TokenCache as Config } from "./token-endpoint-schema.ts";

/** Milliseconds before its end at which a token is not used any more: the backend has to get it in time. */
const MARGIN = 15_000;

interface Kept {
  readonly token: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** Keeps tokens until they expire; requests that wait for the same one share one exchange. */
export class TokenCache {
  readonly #defaultTtl: number;
  readonly #kept: BoundedCache<Kept> | undefined;
  readonly #underWay = new Map<string, Promise<string>>();

  constructor({ maxEntries, defaultTtl }: Config) {
    this.#defaultTtl = defaultTtl;
    this.#kept = maxEntries === 0 ? undefined : new BoundedCache(maxEntries);
  }

  /** `notAfter`: milliseconds since the epoch after which it must not be used. A failure is not kept. */
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
