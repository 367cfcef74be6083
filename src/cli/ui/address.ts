/** Where `tgctl ui` serves: an address that others cannot guess and that stays the same for the same proxies. */
import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../base/errors.ts";
import type { Context } from "../runner/context.ts";

/** Below the ports that systems choose for connections, and those of NodePorts. */
const FIRST_PORT = 20_000;
const PORTS = 10_000;
const KEY_BYTES = 32;

export interface ViewAddress {
  readonly port: number;
  /** The first segment of every path. */
  readonly secret: string;
}

/**
 * The address for proxies with this name. It follows from the name and from a key of the user, which is made once and kept in a file that only
 * the user can read: other users and pages cannot find the address, and links into the view outlive the command.
 */
export async function addressOf(name: string, env: Context["env"]): Promise<ViewAddress> {
  const digest = createHmac("sha256", await userKey(env))
    .update(name)
    .digest();
  return { port: FIRST_PORT + (digest.readUInt32BE() % PORTS), secret: digest.subarray(4, 24).toString("base64url") };
}

/** Without a home folder that can be written to, a key for this run. */
async function userKey({ XDG_STATE_HOME = "", HOME = "" }: Context["env"]): Promise<Buffer> {
  const key = randomBytes(KEY_BYTES);
  const state = XDG_STATE_HOME || (HOME && join(HOME, ".local", "state"));
  if (state === "") return key;
  const folder = join(state, "tracegate");
  const file = join(folder, "ui-key");
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, key, { flag: "wx", mode: 0o600 });
    return key;
  } catch (error) {
    if (codeOf(error) !== "EEXIST") return key;
  }
  const kept = await readFile(file).catch(() => key);
  return kept.length === KEY_BYTES ? kept : key;
}
