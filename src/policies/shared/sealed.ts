import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Result of opening a sealed text. */
export type Opened =
  | { readonly state: "valid"; readonly value: unknown; readonly expires: number }
  /** Expired; the value must not be used. */
  | { readonly state: "expired" }
  /** Modified, sealed with another key or for another purpose, or not a sealed text. */
  | { readonly state: "invalid" };

interface Envelope {
  /** Expiry in Unix seconds. */
  readonly e: number;
  readonly v: unknown;
}

/**
 * Encrypts and authenticates `value` as JSON with AES-256-GCM, so that a client can keep it without reading or changing it.
 * `purpose` is authenticated with it: the text opens for the same purpose only. `expires` is in Unix seconds and sealed too, because
 * clients decide themselves when to delete a cookie. The result is base64url without padding.
 *
 * The IV is random, 96 bits: one key may seal at most 2^32 texts (NIST SP 800-38D, section 8.3).
 */
export function seal(key: Uint8Array, purpose: string, value: unknown, expires: number): string {
  const envelope: Envelope = { e: expires, v: value };
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(purpose));
  const sealed = Buffer.concat([
    iv,
    cipher.update(JSON.stringify(envelope), "utf8"),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return sealed.toString("base64url");
}

/** Opens what `seal` made with the same key and purpose. `now` in Unix seconds. Never throws for text of a client. */
export function open(key: Uint8Array, purpose: string, text: string, now: number): Opened {
  const sealed = Buffer.from(text, "base64url");
  if (sealed.length <= IV_BYTES + TAG_BYTES) return { state: "invalid" };
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  let plain: string;
  try {
    plain = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return { state: "invalid" };
  }
  // Authenticated, so `seal` wrote it.
  const { e, v } = JSON.parse(plain) as Envelope;
  return e > now ? { state: "valid", value: v, expires: e } : { state: "expired" };
}
