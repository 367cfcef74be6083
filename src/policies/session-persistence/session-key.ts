/** A separate file, so that the main thread can make the key at the start without loading policies. */
import { hkdfSync, randomBytes } from "node:crypto";

/**
 * The key that seals sessions, for all workers of this process. Made of the secret that replicas share; without one it is random, and
 * sessions end with the process.
 */
export function sessionKey(secret: Uint8Array | undefined): Uint8Array {
  if (secret === undefined) return new Uint8Array(randomBytes(32));
  return new Uint8Array(hkdfSync("sha256", secret, "", "sessionPersistence", 32));
}
