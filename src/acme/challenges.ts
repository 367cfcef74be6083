/**
 * Answers to validations. The key authorization of a pending challenge is a file of the storage, which workers read when a validation
 * asks for it. So every worker and every process that shares the storage can answer, whichever has placed the order, and a reload
 * changes nothing.
 */
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { LocalReply } from "../http/message/message.ts";
import { challengeFolder, httpChallenge, tlsChallenge } from "./layout.ts";
import { readIfThere, writePrivate } from "./private-files.ts";

/** RFC 8555 8.3. */
const PREFIX = "/.well-known/acme-challenge/";
/** Orders take minutes; what is older was left by a process that ended. */
const LEFT_OVER_MS = 24 * 60 * 60_000;

/** The pending challenges of some storages, as workers see them. */
export class PendingChallenges {
  readonly #folders: readonly string[];

  constructor(storages: readonly string[]) {
    this.#folders = storages.map((storage) => challengeFolder({ storage }));
  }

  /** The response to a validation by http-01; undefined for all other requests, also for tokens that this gateway has not ordered. */
  answerHttp(method: string, path: string): undefined | Promise<undefined | LocalReply> {
    if (!path.startsWith(PREFIX) || (method !== "GET" && method !== "HEAD")) return undefined;
    const file = httpChallenge(path.slice(PREFIX.length));
    return file === undefined ? undefined : this.#answer(file);
  }

  /** The key authorization for a validation of `name` by tls-alpn-01; undefined if none is pending. */
  async forTls(name: string): Promise<string | undefined> {
    const file = tlsChallenge(name);
    return file === undefined ? undefined : this.#read(file);
  }

  async #answer(file: string): Promise<undefined | LocalReply> {
    const body = await this.#read(file);
    if (body === undefined) return undefined;
    return { status: 200, headers: ["content-type", "application/octet-stream"], body };
  }

  async #read(file: string): Promise<string | undefined> {
    for (const folder of this.#folders) {
      // An unreadable storage counts as one without challenges; the thread that orders reports it.
      const text = await readIfThere(join(folder, file)).catch(() => undefined);
      if (text !== undefined) return text;
    }
    return undefined;
  }
}

/** Makes a challenge answerable; resolves with a function that takes the answer back. */
export async function publish(
  storage: string,
  challenge:
    | { readonly type: "http-01"; readonly token: string }
    | { readonly type: "tls-alpn-01"; readonly name: string },
  keyAuthorization: string,
): Promise<() => Promise<void>> {
  const file = challenge.type === "http-01" ? httpChallenge(challenge.token) : tlsChallenge(challenge.name);
  if (file === undefined) throw new Error("the server has sent a token that is not base64url");
  const path = join(challengeFolder({ storage }), file);
  await writePrivate(path, keyAuthorization);
  return () => rm(path, { force: true });
}

/** Removes what processes that ended in the middle of an order have left. */
export async function removeLeftOver(storage: string, now = Date.now()): Promise<void> {
  const folder = challengeFolder({ storage });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const age = await stat(path)
      .then(({ mtimeMs }) => now - mtimeMs)
      .catch(() => 0);
    if (age > LEFT_OVER_MS) await rm(path, { force: true });
  }
}
