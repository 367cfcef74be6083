import { randomBytes } from "node:crypto";
import { BoundedCache, owned } from "../../base/bounded-cache.ts";
import { seconds } from "../../base/dates.ts";
import type { Opened } from "../shared/sealed.ts";
import type { Claims, Session } from "../shared-sessions/session.ts";
import { revocationKey } from "../shared-sessions/shared-sessions.ts";
import type { Cookies, SealedCookies } from "./cookies.ts";

/** Seconds that a session lasts, unless `session.lifetime` says otherwise. */
const LIFETIME = 3600;
/** Seconds that tokens are taken to be valid if the provider does not say it. */
const UNKNOWN_LIFE = 3600;
/** Tokens are refreshed in the last fifth of their life, but not more than a minute before its end. */
const EARLY_SHARE = 0.2;
const EARLY_MAX = 60;
/** The cookie of the last use is renewed after this share of the idle timeout, not with every request. */
const TOUCH_SHARE = 0.1;

/** Opened sessions that are remembered: opening one takes 20 µs, as long as the rest of a request. */
const MAX_REMEMBERED = 256;
/** Characters by which they are found: the random IV and more. Looking up whole texts, which may have 19,000, took 7 µs. */
const REMEMBERED_BY = 32;
/** Characters of their cookies. */
const MAX_REMEMBERED_WEIGHT = 2 * 1024 * 1024;

/** What the token endpoint returned, verified. */
export interface Tokens {
  /** Absent if a refresh returned no id token. */
  readonly id?: { readonly token: string; readonly claims: Claims };
  readonly access: string;
  readonly refresh?: string | undefined;
  /** Seconds that the access token is valid, if the provider says it. */
  readonly expiresIn?: number | undefined;
}

/** What the configuration says about sessions. Times in seconds. */
export interface SessionSettings {
  readonly lifetime?: number | undefined;
  readonly idleTimeout?: number | undefined;
  readonly keepsAccessToken: boolean;
  readonly keepsIdToken: boolean;
  /** Issuer and client, which revocations belong to. */
  readonly client: readonly [issuer: string, clientId: string];
}

interface Valid {
  readonly state: "valid";
  readonly session: Session;
  /** When the session ends, whatever happens. */
  readonly ends: number;
  /** By which it can be revoked. */
  readonly keys: readonly bigint[];
}

/** What a request says about its session. `idle`: it was not used for too long. */
export type FoundSession = Valid | { readonly state: "expired" | "invalid" | "idle" };

interface Remembered {
  readonly text: string;
  readonly valid: Valid;
}

/** Sessions of logged-in users: the browser keeps them in sealed cookies, parts of one text if they are large. */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #name: string;
  /** Name of the cookie of the last use. It is separate, so that renewing it cannot bring back a session that was refreshed meanwhile. */
  readonly #usedName: string;
  readonly #settings: SessionSettings;
  readonly #remembered = new BoundedCache<Remembered>(MAX_REMEMBERED, MAX_REMEMBERED_WEIGHT, ({ text }) => text.length);
  /** Opened cookies of the last use, for the same reason. */
  readonly #uses = new BoundedCache<Extract<Opened, { state: "valid" }>>(MAX_REMEMBERED);
  /** Two processes rarely refresh the same session at once if each has its own moment. */
  readonly #early = EARLY_SHARE * (0.5 + Math.random() / 2);

  constructor(cookies: SealedCookies, id: string, settings: SessionSettings) {
    this.#cookies = cookies;
    this.#name = `${cookies.prefix}s_${id}`;
    this.#usedName = `${cookies.prefix}u_${id}`;
    this.#settings = settings;
  }

  /** Seconds after which no session of this policy is left. */
  get longest(): number {
    return this.#settings.lifetime ?? LIFETIME;
  }

  /** The session of a request; undefined = no cookie. */
  read(sent: Cookies, now = seconds()): FoundSession | undefined {
    const text = this.#cookies.text(sent, this.#name);
    if (text === undefined) return undefined;
    const found = this.#open(text, now);
    if (found.state !== "valid" || this.#settings.idleTimeout === undefined) return found;
    const used = this.#lastUse(sent, now);
    return used !== undefined && used.value === found.session.id ? found : { state: "idle" };
  }

  /** The session of a login. `tokens` has an id token. */
  begin({ id, ...tokens }: Tokens & Required<Pick<Tokens, "id">>, now = seconds()): Session {
    return this.#with({ id: random(), began: now, claims: id.claims }, { ...tokens, id }, now);
  }

  /** The session after a refresh. What the provider did not send again stays as it is (RFC 6749, section 6). */
  renew(session: Session, tokens: Tokens, now = seconds()): Session {
    const { id, began, refresh, hint } = session;
    const claims = tokens.id?.claims ?? session.claims;
    return {
      ...(hint !== undefined && { hint }),
      ...this.#with({ id, began, claims }, { ...tokens, refresh: tokens.refresh ?? refresh }, now),
    };
  }

  /** Whether the tokens should be refreshed now: they expire soon. */
  due({ refresh, issued, expires }: Session, now = seconds()): boolean {
    if (refresh === undefined) return false;
    return now >= expires - Math.min(EARLY_MAX, (expires - issued) * this.#early);
  }

  /** Whether the tokens have expired that the session depends on. */
  lapsed({ refresh, access, expires }: Session, now = seconds()): boolean {
    return now >= expires && (refresh !== undefined || access !== undefined);
  }

  /** When the session ends, whatever happens: without a refresh token and a configured lifetime, no later than the id token. */
  ends({ began, claims, refresh }: Session): number {
    const end = began + this.longest;
    return this.#settings.lifetime === undefined && refresh === undefined ? Math.min(claims.exp, end) : end;
  }

  /** Set-Cookie values that give the browser this session. Throws TG_OIDC with 500 if it is too large. */
  issue(session: Session, sent: Cookies, now = seconds()): string[] {
    const cookies = this.#cookies.issueParts(this.#name, session, this.ends(session), sent, now);
    return [...cookies, ...this.#used(session, now)];
  }

  /** Set-Cookie values that say that the session was used; none if that is not counted, or was said shortly before. */
  touch(session: Session, sent: Cookies, now = seconds()): string[] {
    const { idleTimeout } = this.#settings;
    if (idleTimeout === undefined) return [];
    const used = this.#lastUse(sent, now);
    const recent = used !== undefined && used.expires - now > idleTimeout * (1 - TOUCH_SHARE);
    return recent ? [] : this.#used(session, now);
  }

  /** Set-Cookie values that remove the session. */
  remove(sent: Cookies): string[] {
    const used = sent.has(this.#usedName) ? [this.#cookies.remove(this.#usedName)] : [];
    return [...this.#cookies.removeParts(this.#name, sent), ...used];
  }

  #used({ id }: Session, now: number): string[] {
    const { idleTimeout } = this.#settings;
    return idleTimeout === undefined ? [] : [this.#cookies.issue(this.#usedName, id, now + idleTimeout, now)];
  }

  /** What the cookie of the last use says; undefined if there is none, or none that is valid. */
  #lastUse(sent: Cookies, now: number): Extract<Opened, { state: "valid" }> | undefined {
    const text = sent.get(this.#usedName);
    if (text === undefined) return undefined;
    const known = this.#uses.get(text);
    if (known !== undefined && known.expires > now) return known;
    const opened = this.#cookies.open(this.#usedName, text, now);
    if (opened.state !== "valid") return undefined;
    this.#uses.set(text, opened);
    return opened;
  }

  #with(login: Pick<Session, "id" | "began" | "claims">, tokens: Tokens, now: number): Session {
    const { keepsAccessToken, keepsIdToken } = this.#settings;
    return {
      ...login,
      generation: random(),
      issued: now,
      expires: now + (tokens.expiresIn ?? Math.max(1, (tokens.id?.claims.exp ?? now + UNKNOWN_LIFE) - now)),
      ...(tokens.refresh !== undefined && { refresh: tokens.refresh }),
      ...(keepsAccessToken && { access: tokens.access }),
      ...(keepsIdToken && tokens.id !== undefined && { hint: tokens.id.token }),
    };
  }

  #open(text: string, now: number): FoundSession {
    const beginning = text.slice(0, REMEMBERED_BY);
    const known = this.#remembered.get(beginning);
    // Anyone can send the beginning of another text.
    if (known?.text === text && known.valid.ends > now) return known.valid;
    const opened = this.#cookies.open(this.#name, text, now);
    if (opened.state !== "valid") return opened;
    const session = opened.value as Session;
    const valid = { state: "valid", session, ends: opened.expires, keys: this.keys(session) } as const;
    this.#remembered.set(beginning, { text: owned(text), valid });
    return valid;
  }

  /** By which a session can be revoked: its login here, its session at the provider, and its user. */
  keys({ id, claims: { sid, sub } }: Session): bigint[] {
    const { client } = this.#settings;
    const atProvider =
      typeof sid === "string" ? revocationKey(...client, "sid", sid) : revocationKey(...client, "no sid", sub);
    return [revocationKey(...client, "id", id), revocationKey(...client, "sub", sub), atProvider];
  }
}

function random(): string {
  return randomBytes(12).toString("base64url");
}
