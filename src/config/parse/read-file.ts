import { readFileSync } from "node:fs";
import { messageOf } from "../../base/errors.ts";

/** Rejects implausibly large files. */
export const MAX_BYTES = 64 * 1024 * 1024;

/** A whole file of text; `-` is standard input. Throws an Error whose message says in words why it cannot be read. */
export function readText(path: string): string {
  return toText(readBytes(path));
}

/** A whole file; throws as `readText` does, with the system's error as its cause. */
export function readBytes(path: string): Buffer {
  try {
    return readFileSync(path === "-" ? 0 : path);
  } catch (cause) {
    throw new Error(explain(cause), { cause });
  }
}

/** Throws as `readText` does. */
export function toText(bytes: Uint8Array): string {
  if (bytes.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES / 1024 / 1024} MiB`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error("it is not text in UTF-8");
  }
}

function explain(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
    case "ENOTDIR":
      return "it does not exist";
    case "EACCES":
    case "EPERM":
      return "not permitted";
    case "EISDIR":
      return "it is a folder";
    default:
      return messageOf(error);
  }
}
