import type { Readable, Writable } from "node:stream";

/** What a command may touch of the process it runs in. */
export interface Context {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--json` was given. */
  readonly json: boolean;
  /** Aborted by SIGINT, SIGTERM, SIGHUP, and when the reader of stdout has gone. */
  readonly signal: AbortSignal;
}

/** Writes and waits until the text is handed to the system, so that a slow reader slows the writer. */
export function write(stream: Writable, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Writes indented JSON to stdout. */
export function writeJson(context: Context, value: unknown): Promise<void> {
  return write(context.stdout, `${JSON.stringify(value, null, 2)}\n`);
}
