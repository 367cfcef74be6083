import { BoundedCache } from "../../base/bounded-cache.ts";
import { type Cookies, type SealedCookies, seconds } from "./cookies.ts";
import type { Opened } from "./sealed.ts";

/** A login is good for this long, or as long as the id token when that ends sooner. */
const LIFETIME_SECONDS = 3600;

/** Sessions that are remembered once opened: opening takes 20 µs, as long as all else of a request; at most 4 KiB each. */
const MAX_REMEMBERED = 256;

/** Claims of a verified id token (OpenID Connect Core 2). */
export interface Claims {
  readonly sub: string;
  /** Seconds since 1970. */
  readonly exp: number;
  readonly [claim: string]: unknown;
}

/** Who is logged in: the browser keeps the claims, sealed. */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #name: string;
  readonly #remembered = new BoundedCache<Extract<Opened, { state: "valid" }>>(MAX_REMEMBERED);

  constructor(cookies: SealedCookies, id: string) {
    this.#cookies = cookies;
    this.#name = `${cookies.prefix}s_${id}`;
  }

  /** A valid session's value are its `Claims`; undefined: there is none. */
  read(sent: Cookies): Opened | undefined {
    const text = sent.get(this.#name);
    if (text === undefined) return undefined;
    const known = this.#remembered.get(text);
    if (known !== undefined && known.expires > seconds()) return known;
    this.#remembered.delete(text);
    const opened = this.#cookies.read(sent, this.#name);
    if (opened?.state === "valid") this.#remembered.set(text, opened);
    return opened;
  }

  /** The Set-Cookie value of a new session. Throws TG_OIDC with 500 when there are more claims than a cookie can hold. */
  issue(claims: Claims): string {
    return this.#cookies.issue(this.#name, claims, Math.min(claims.exp, seconds() + LIFETIME_SECONDS));
  }
}
