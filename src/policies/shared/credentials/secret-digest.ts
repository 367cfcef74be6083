import { hash, randomBytes, timingSafeEqual } from "node:crypto";

/** Random per process: without it, clients could compute digests and learn from the time of a look-up how much of one matches. */
let key: Uint8Array | undefined;

/**
 * A SHA-256 digest under the key of this process, as index of credentials in caches: caches then hold no credential. Texts are
 * UTF-8. One call of `hash` takes 1 µs; with streams and HMAC it took 8.
 */
export function secretDigest(...parts: readonly (string | Uint8Array)[]): Buffer {
  // On first use, not when the module loads: it would cost every start 6 ms.
  key ??= randomBytes(32);
  const pieces: Uint8Array[] = [key];
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part, "utf8") : part;
    // Lengths keep ("a", "bc") apart from ("ab", "c"), and a text from longer ones that begin with it.
    pieces.push(Buffer.from(`${bytes.length}:`), bytes);
  }
  return hash("sha256", Buffer.concat(pieces), "buffer");
}

/** Compares in constant time: where two secrets differ must not show in the response time. */
export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(secretDigest(a), secretDigest(b));
}
