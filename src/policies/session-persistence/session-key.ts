/** A file of its own: the main thread makes the key at start and must not load policies for that. */
import { hkdfSync, randomBytes } from "node:crypto";

/**
 * The key that seals sessions, for all workers of this process. Made of the secret that replicas share; without one it is random, and
 * sessions end with the process.
 */
export function sessionKey(secret: Uint8Array | undefined): Uint8Array {
  if (secret === undefined) return new Uint8Array(randomBytes(32));
  return new Uint8Array(hkdfSync("sha256", secret, "", "sessionPersistence", 32));
}
