import type { Readable, Writable } from "node:stream";
import { escapeUnsafe } from "../../base/terminal-text.ts";

/** The process as a command sees it: streams, environment and cancellation. */
export interface Context {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** `columns`: the width of a terminal. */
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--json` was given. */
  readonly json: boolean;
  /** Aborted by SIGINT, SIGTERM, SIGHUP, and when stdout is closed. */
  readonly signal: AbortSignal;
}

/**
 * The only function that writes a command's output. Traces and dumps contain text from clients and backends, which must not control the
 * terminal. Bytes, such as profiles, are written unchanged. Resolves when the system has accepted the text, so that a slow reader slows the
 * writer down.
 */
export function write(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(typeof text === "string" ? escapeUnsafe(text) : text, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Writes indented JSON to stdout. */
export function writeJson(context: Context, value: unknown): Promise<void> {
  return write(context.stdout, `${JSON.stringify(value, null, 2)}\n`);
}
