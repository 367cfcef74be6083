import { timingSafeEqual } from "node:crypto";
import { generateRandomCodeVerifier, generateRandomNonce, generateRandomState } from "oauth4webapi";
import { seconds } from "../../base/dates.ts";
import type { Cookies, SealedCookies } from "./cookies.ts";
import { LoginError } from "./failure.ts";

/** Time that a user has to log in. */
const LIFETIME_SECONDS = 300;
/** Logins of one browser at a time, for example in several tabs; the oldest is dropped. Bounds the Cookie header. */
const MAX_OPEN = 8;
/** Characters of the URL to return to; after a login from a longer one, the browser goes to `/` (reference 3.5). */
const MAX_RETURN = 2048;
/** 32 random bytes in base64url, as `begin` makes them. */
const STATE = /^[\w-]{43}$/;

/**
 * One login, from the redirect to the provider until the callback. `state` stops login CSRF (RFC 6749, section 10.12), `nonce` the
 * replay of ID tokens (OpenID Connect Core, section 3.1.2.1), `verifier` the use of stolen codes (PKCE, RFC 7636).
 */
export interface Transaction {
  readonly state: string;
  readonly nonce: string;
  /** PKCE code verifier: proves to the token endpoint that this client began the login. */
  readonly verifier: string;
  /** Path and query to go to after the login. */
  readonly returnTo: string;
}

/** Logins in progress. Each has its own cookie, named after its state, so that logins in several tabs do not interfere. */
export class Transactions {
  readonly #cookies: SealedCookies;
  readonly #prefix: string;

  constructor(cookies: SealedCookies, id: string) {
    this.#cookies = cookies;
    this.#prefix = `${cookies.prefix}t_${id}_`;
  }

  /** Begins a login. `cookies` are Set-Cookie values: the new one, and removals of expired and surplus ones. */
  begin(sent: Cookies, target: string): { readonly transaction: Transaction; readonly cookies: readonly string[] } {
    const transaction = {
      state: generateRandomState(),
      nonce: generateRandomNonce(),
      verifier: generateRandomCodeVerifier(),
      returnTo: target.length > MAX_RETURN || !target.startsWith("/") ? "/" : target,
    };
    const cookie = this.#cookies.issue(this.#name(transaction.state), transaction, seconds() + LIFETIME_SECONDS);
    return { transaction, cookies: [cookie, ...this.#makeRoom(sent)] };
  }

  /** The login with this `state`, and the Set-Cookie value that removes its cookie. Throws TG_OIDC with 400. */
  find(sent: Cookies, state: string): { readonly transaction: Transaction; readonly removal: string } {
    if (!STATE.test(state)) throw new LoginError("invalidCallback", new Error("its state is malformed"));
    const name = this.#name(state);
    const opened = this.#cookies.read(sent, name);
    if (opened === undefined) throw new LoginError("missingTransaction");
    const removal = this.#cookies.remove(name);
    if (opened.state !== "valid") throw new LoginError("invalidTransaction", undefined, [removal]);
    const transaction = opened.value as Transaction;
    if (!timingSafeEqual(Buffer.from(transaction.state), Buffer.from(state)))
      throw new LoginError("csrfMismatch", undefined, [removal]);
    return { transaction, removal };
  }

  /** Removals of expired logins, and of the oldest ones beyond MAX_OPEN - 1. */
  #makeRoom(sent: Cookies): string[] {
    const open: { readonly name: string; readonly expires: number }[] = [];
    const removals: string[] = [];
    for (const name of sent.keys()) {
      if (!name.startsWith(this.#prefix)) continue;
      const opened = this.#cookies.read(sent, name);
      if (opened?.state === "valid") open.push({ name, expires: opened.expires });
      else removals.push(name);
    }
    open.sort((a, b) => b.expires - a.expires);
    removals.push(...open.slice(MAX_OPEN - 1).map(({ name }) => name));
    return removals.map((name) => this.#cookies.remove(name));
  }

  #name(state: string): string {
    return this.#prefix + state.slice(0, 16);
  }
}
