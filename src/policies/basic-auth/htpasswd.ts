import { messageOf } from "../../base/errors.ts";
import { requireKnownHash } from "./hashes.ts";

/**
 * The hashes of the users of a file as htpasswd writes it: `user:hash`, a line each; empty lines and those that begin with `#` are passed
 * over. Throws an Error that names the line and how to mend it, and shows nothing of a hash.
 */
export function parseHtpasswd(text: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    if (colon <= 0) throw new Error(`line ${i + 1}: is not user:hash`);
    const user = line.slice(0, colon);
    if (users.has(user)) throw new Error(`line ${i + 1}: the user ${user} stands further up; remove one of the lines`);
    try {
      const hashed = line.slice(colon + 1).trim();
      requireKnownHash(hashed);
      users.set(user, hashed);
    } catch (error) {
      const why = messageOf(error);
      throw new Error(`line ${i + 1}: the password of ${user} ${why}; generate the line again with htpasswd -B`);
    }
  }
  return users;
}
