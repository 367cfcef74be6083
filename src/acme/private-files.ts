/** Files that only their owner may read, written so that readers never see half of one. */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf } from "../base/errors.ts";

const OWNER_ONLY = 0o600;
const FOLDER = 0o700;

/** Creates the folder of a file, which others can neither list nor enter. */
export async function makeFolderOf(path: string): Promise<void> {
  const folder = dirname(path);
  if ((await mkdir(folder, { recursive: true, mode: FOLDER })) === undefined) await chmod(folder, FOLDER);
}

/** Replaces a file in one step, also when other processes write it at the same time; the last one wins. */
export async function writePrivate(path: string, text: string): Promise<void> {
  await makeFolderOf(path);
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", OWNER_ONLY);
    try {
      await file.writeFile(text);
      // A crash of the machine must not leave an empty file under the final name.
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** The text of a file; undefined if the file does not exist. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
