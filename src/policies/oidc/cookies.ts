import { cookiePairs } from "../../base/cookies.ts";
import { seconds } from "../../base/dates.ts";
import type { HeaderList } from "../../http/message/message.ts";
import { type Opened, open, seal } from "../shared/sealed.ts";
import { LoginError } from "./failure.ts";

/** Prefix of the gateway's own cookies, also after `__Host-`; they never reach a backend. */
const COOKIE_PREFIX = "tracegate_oidc_";
/** Over TLS: neither a sibling host nor a connection without TLS can set such a cookie (RFC 6265bis, section 4.1.3.2). */
const HOST_PREFIX = `__Host-${COOKIE_PREFIX}`;
/** Bytes of a cookie's value: browsers drop cookies above 4096 bytes with name and attributes (RFC 6265 6.1). */
const MAX_VALUE = 3800;
/** Cookies of one text. Bounds the Cookie header, together with logins under way. */
const MAX_PARTS = 5;
/** The first part says how many there are; base64url has no dot. */
const FIRST_PART = /^([2-5])\.(.*)$/;

/** Cookies by name, as the client sent them. */
export type Cookies = ReadonlyMap<string, string>;

/** Removes the gateway's cookies from the headers and returns them; the first of a name counts (RFC 6265, section 5.4: longer paths first). */
export function takeCookies(headers: HeaderList): Map<string, string> {
  const taken = new Map<string, string>();
  let to = 0;
  for (let from = 0; from < headers.length; from += 2) {
    const name = headers[from] as string;
    let value = headers[from + 1] as string;
    if (name === "cookie" && value.includes(COOKIE_PREFIX)) {
      value = takeFrom(value, taken);
      if (value === "") continue;
    }
    headers[to] = name;
    headers[to + 1] = value;
    to += 2;
  }
  headers.length = to;
  return taken;
}

function takeFrom(field: string, taken: Map<string, string>): string {
  const kept: string[] = [];
  for (const { name, value = "", text } of cookiePairs(field)) {
    if (!name.startsWith(COOKIE_PREFIX) && !name.startsWith(HOST_PREFIX)) kept.push(text);
    else if (!taken.has(name)) taken.set(name, value);
  }
  return kept.join("; ");
}

/**
 * Cookies that only the gateway can create and read. A value is bound to its name and to `policy`, a fingerprint of provider and
 * client: moved to another name, or to a policy with another provider, it does not open.
 */
export class SealedCookies {
  readonly #key: Uint8Array;
  readonly #policy: string;
  readonly #attributes: string;
  /** What the names of all cookies begin with. */
  readonly prefix: string;

  /** `secure`: only sent over TLS. */
  constructor(key: Uint8Array, policy: string, secure: boolean) {
    this.#key = key;
    this.#policy = policy;
    this.prefix = secure ? HOST_PREFIX : COOKIE_PREFIX;
    // Lax and not Strict: the callback is a navigation from the site of the provider and must carry the cookies.
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  }

  /** Opens the cookie with this name; undefined if the request does not carry it. */
  read(cookies: Cookies, name: string, now = seconds()): Opened | undefined {
    const text = cookies.get(name);
    return text === undefined ? undefined : this.open(name, text, now);
  }

  /** The sealed text with this name, put together from its parts; undefined if the request does not carry it. */
  text(cookies: Cookies, name: string): string | undefined {
    const first = cookies.get(name);
    const [, count, start] = (first?.[1] === "." && FIRST_PART.exec(first)) || [];
    if (count === undefined || start === undefined) return first;
    let text = start;
    // A missing part makes a text that does not open.
    for (let i = 1; i < Number(count); i++) text += cookies.get(partName(name, i)) ?? "";
    return text;
  }

  /** Opens a text of `text`. */
  open(name: string, text: string, now = seconds()): Opened {
    return open(this.#key, this.#purpose(name), text, now);
  }

  /** A Set-Cookie value that lasts until `expires`, in Unix seconds. Throws TG_OIDC with 500 if it would be too large. */
  issue(name: string, value: unknown, expires: number, now = seconds()): string {
    const text = seal(this.#key, this.#purpose(name), value, expires);
    if (text.length > MAX_VALUE) throw tooLarge(text, MAX_VALUE);
    return this.#set(name, text, expires - now);
  }

  /**
   * Set-Cookie values of a text that may need several cookies. `sent`: what the browser has; parts of a longer text are removed, as the
   * parts of two texts do not open together. Throws TG_OIDC with 500 if it would need too many.
   */
  issueParts(name: string, value: unknown, expires: number, sent: Cookies, now = seconds()): string[] {
    const text = seal(this.#key, this.#purpose(name), value, expires);
    const count = text.length <= MAX_VALUE ? 1 : Math.ceil((text.length + 2) / MAX_VALUE);
    if (count > MAX_PARTS) throw tooLarge(text, MAX_PARTS * MAX_VALUE - 2);
    const marked = count === 1 ? text : `${count}.${text}`;
    const cookies = Array.from({ length: count }, (_, i) =>
      this.#set(partName(name, i), marked.slice(i * MAX_VALUE, (i + 1) * MAX_VALUE), expires - now),
    );
    return [...cookies, ...this.#removals(name, count, sent)];
  }

  /** Set-Cookie values that remove all parts that the browser has. */
  removeParts(name: string, sent: Cookies): string[] {
    return this.#removals(name, 0, sent);
  }

  /** A Set-Cookie value that removes the cookie. */
  remove(name: string): string {
    return `${name}=; ${this.#attributes}; Max-Age=0`;
  }

  #removals(name: string, from: number, sent: Cookies): string[] {
    const removals: string[] = [];
    for (let i = from; i < MAX_PARTS; i++)
      if (sent.has(partName(name, i))) removals.push(this.remove(partName(name, i)));
    return removals;
  }

  #set(name: string, text: string, maxAge: number): string {
    return `${name}=${text}; ${this.#attributes}; Max-Age=${maxAge}`;
  }

  #purpose(name: string): string {
    return `${name} ${this.#policy}`;
  }
}

function partName(name: string, i: number): string {
  return i === 0 ? name : `${name}_${i}`;
}

function tooLarge(text: string, most: number): LoginError {
  return new LoginError("cookieTooLarge", new Error(`${text.length} bytes, at most ${most} are allowed`));
}
