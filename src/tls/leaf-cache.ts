import { isIPv4 } from "node:net";
import type { CertificateAndKey, LeafCaching } from "./tls-settings.ts";
import { type Issuer, readIssuer } from "./x509/issuer.ts";
import { type Leaf, mintLeaf } from "./x509/leaf.ts";

/** Called for each certificate that is made for `name`; for the log. */
export type LeafListener = (name: string, leaf: Leaf) => void;

interface CachedLeaf {
  readonly identity: CertificateAndKey;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/**
 * The certificates that one CA has signed, by server name (SNI). Clients choose the names, so the cache is bounded: beyond
 * `capacity` the least recently used entry is evicted, and a client that tries many names cannot exhaust memory.
 */
export class LeafCache {
  readonly #chain: string;
  readonly #issuer: Issuer;
  readonly #caching: LeafCaching;
  readonly #onMade: LeafListener;
  readonly #now: () => number;
  /** Least recently used first. */
  readonly #entries = new Map<string, CachedLeaf>();

  /** `cert`: the CA's certificate, and those above it. Throws an Error when the CA cannot sign. */
  constructor(cert: string, key: string, caching: LeafCaching, onMade: LeafListener, now: () => number = Date.now) {
    this.#chain = cert;
    this.#issuer = readIssuer(cert, key);
    this.#caching = caching;
    this.#onMade = onMade;
    this.#now = now;
  }

  /** Returns the same object for a name while it is cached. Throws an Error that says why there is no certificate for a name. */
  get(name: string): CertificateAndKey {
    const now = this.#now();
    const known = this.#entries.get(name);
    this.#entries.delete(name);
    const entry = known !== undefined && known.until > now ? known : this.#mint(name, now);
    this.#entries.set(name, entry);
    this.#trim();
    return entry.identity;
  }

  #mint(name: string, now: number): CachedLeaf {
    const problem = nameProblem(name);
    if (problem !== undefined) throw new Error(problem);
    const leaf = mintLeaf(this.#issuer, name, now);
    this.#onMade(name, leaf);
    const { cert, key, notAfter } = leaf;
    return { identity: { cert: cert + this.#chain, key }, until: Math.min(now + this.#caching.ttl, notAfter) };
  }

  /** Evicts one entry: at most one was added. */
  #trim(): void {
    if (this.#entries.size <= this.#caching.capacity) return;
    const [oldest = ""] = this.#entries.keys();
    this.#entries.delete(oldest);
  }
}

/** Why there can be no certificate for what a client asked for; undefined when it is a DNS name (RFC 1123 2.1). */
function nameProblem(name: string): string | undefined {
  if (name === "") return "the client names no server, so there is no name to make a certificate for";
  if (isIPv4(name)) return `the client asks for ${name}, an address; certificates are made for DNS names`;
  return name.length <= 253 && name.split(".").every((label) => LABEL.test(label))
    ? undefined
    : `the client asks for ${name}, which is not a DNS name`;
}

/** Allows `_`, which host names must not contain but names inside a cluster may. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
