import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What became of a sealed text. */
export type Opened =
  | { readonly state: "valid"; readonly value: unknown; readonly expires: number }
  /** Past its time; what it held must not be used. */
  | { readonly state: "expired" }
  /** Tampered with, made with another key or for another purpose, or no sealed text at all. */
  | { readonly state: "invalid" };

interface Envelope {
  /** Seconds since 1970. */
  readonly e: number;
  readonly v: unknown;
}

/**
 * Encrypts and authenticates `value` (JSON) with AES-256-GCM, so that it can be given to a client to keep. `purpose` is
 * authenticated with it: the text opens for that purpose alone. `expires` in seconds since 1970. Base64url without padding.
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

/** Opens what `seal` has made with the same key and purpose. `now` in seconds since 1970. */
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
  // What is authenticated has been written by `seal`.
  const { e, v } = JSON.parse(plain) as Envelope;
  return e > now ? { state: "valid", value: v, expires: e } : { state: "expired" };
}
