/**
 * The user list of `basicAuth`: parsing, and verification of passwords against every kind of hash that htpasswd writes. Also
 * loaded by the thread that verifies passwords, so it imports nothing of the gateway but errors and digests.
 */
import { hash } from "node:crypto";
import { compareSync } from "bcryptjs";
import { messageOf } from "../../base/errors.ts";
import { sameSecret } from "../shared/credentials/secret-digest.ts";
import { md5Crypt, shaCrypt } from "./crypt.ts";

/** Verifies a password against one hash. */
type Verifier = (password: string) => boolean;

const BCRYPT = /^\$2[aby]\$\d\d\$[./0-9A-Za-z]{53}$/;
const MD5 = /^(\$apr1\$|\$1\$)([./0-9A-Za-z]{1,8})\$([./0-9A-Za-z]{22})$/;
const SHA = /^\$([56])\$(?:rounds=(\d{1,9})\$)?([^$:]{1,16})\$([./0-9A-Za-z]{43}|[./0-9A-Za-z]{86})$/;
const SHA1 = /^\{SHA\}([0-9A-Za-z+/]{27}=)$/;
const DES = /^[./0-9A-Za-z]{13}$/;

const DEFAULT_ROUNDS = 5000;
/** More rounds would let each wrong password occupy the thread for seconds. */
const MAX_ROUNDS = 1_000_000;

/**
 * Parses the format of Apache's htpasswd: one `user:hash` per line, blank lines and lines with `#` are ignored. Returns hashes by
 * user. Throws an Error with the line number and the correction; it contains no part of a hash, since it goes to logs.
 */
export function parseHtpasswd(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    if (colon <= 0) throw new Error(`line ${i + 1}: is not user:hash`);
    const user = line.slice(0, colon);
    if (users.has(user)) throw new Error(`line ${i + 1}: the user ${user} is listed above; remove one of the lines`);
    try {
      const hashed = line.slice(colon + 1).trim();
      verifierOf(hashed);
      users.set(user, hashed);
    } catch (error) {
      const why = messageOf(error);
      throw new Error(`line ${i + 1}: the password of ${user} ${why}; generate the line again with htpasswd -B`);
    }
  }
  return users;
}

/** Whether verification is too slow for the thread that serves requests: everything but `{SHA}`, a single SHA-1. */
export function isSlow(hashed: string): boolean {
  return !SHA1.test(hashed);
}

/** Whether the password matches; blocks for as long as the hash was made to take. Throws an Error for a hash of an unknown kind. */
export function verifyPassword(hashed: string, password: string): boolean {
  return verifierOf(hashed)(password);
}

function verifierOf(hashed: string): Verifier {
  if (BCRYPT.test(hashed)) return (password) => compareSync(password, hashed);
  return md5Verifier(hashed) ?? shaVerifier(hashed) ?? sha1Verifier(hashed) ?? reject(hashed);
}

function md5Verifier(hashed: string): Verifier | undefined {
  const [, magic = "", salt = "", expected] = MD5.exec(hashed) ?? [];
  if (expected === undefined) return undefined;
  return (password) => sameSecret(md5Crypt(Buffer.from(password), salt, magic), expected);
}

function shaVerifier(hashed: string): Verifier | undefined {
  const [, id, given, salt = "", expected] = SHA.exec(hashed) ?? [];
  if (expected === undefined || (id !== "5" && id !== "6")) return undefined;
  const rounds = given === undefined ? DEFAULT_ROUNDS : Number(given);
  if (rounds > MAX_ROUNDS) throw new Error(`takes ${rounds} rounds, at most ${MAX_ROUNDS} are allowed`);
  // The format says that fewer than 1000 rounds count as 1000.
  const counted = Math.max(1000, rounds);
  return (password) => sameSecret(shaCrypt(id, Buffer.from(password), salt, counted), expected);
}

function sha1Verifier(hashed: string): Verifier | undefined {
  const expected = SHA1.exec(hashed)?.[1];
  return expected === undefined ? undefined : (password) => sameSecret(hash("sha1", password, "base64"), expected);
}

function reject(hashed: string): never {
  if (DES.test(hashed))
    throw new Error("uses the old crypt, which looks only at the first eight characters of a password");
  throw new Error("is in plain text or in an unknown format");
}
