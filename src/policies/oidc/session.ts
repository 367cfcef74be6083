import { BoundedCache } from "../../base/bounded-cache.ts";
import type { Opened } from "../shared/sealed.ts";
import { type Cookies, type SealedCookies, seconds } from "./cookies.ts";

/** Lifetime of a session; the ID token ends it earlier if it expires first (docs/policies/oidc.md). */
const LIFETIME_SECONDS = 3600;

/** Opened sessions that are remembered, at most 4 KiB each: opening one takes 20 µs, as long as the rest of a request. */
const MAX_REMEMBERED = 256;

/** Claims of a verified id token (OpenID Connect Core 2). */
export interface Claims {
  readonly sub: string;
  /** Unix seconds. */
  readonly exp: number;
  readonly [claim: string]: unknown;
}

/** Sessions of logged-in users: the browser keeps the claims in a sealed cookie. A session cannot be revoked before it expires. */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #name: string;
  readonly #remembered = new BoundedCache<Extract<Opened, { state: "valid" }>>(MAX_REMEMBERED);

  constructor(cookies: SealedCookies, id: string) {
    this.#cookies = cookies;
    this.#name = `${cookies.prefix}s_${id}`;
  }

  /** The session of a request; the value of a valid one is `Claims`. undefined = no cookie. */
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

  /** The Set-Cookie value of a new session. Throws TG_OIDC with 500 if the claims do not fit into a cookie. */
  issue(claims: Claims): string {
    return this.#cookies.issue(this.#name, claims, Math.min(claims.exp, seconds() + LIFETIME_SECONDS));
  }
}
