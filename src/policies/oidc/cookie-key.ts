/** A separate file, so that the main thread can read the key at the start without loading the login and its libraries. */

/** The environment variable that holds the key of the cookies. */
export const COOKIE_SECRET = "OIDC_COOKIE_SECRET";
const HEX = /^[0-9a-fA-F]{64}$/;

/** The key of AES-256, from 64 hexadecimal digits; undefined for anything else. */
export function parseCookieKey(text: string): Uint8Array | undefined {
  return HEX.test(text) ? new Uint8Array(Buffer.from(text, "hex")) : undefined;
}
