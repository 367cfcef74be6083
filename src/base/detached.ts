/**
 * A copy of a text, for tables that outlive a request: V8 keeps a substring as a reference to the whole string, so a short key could keep a
 * body of megabytes in memory.
 */
export function detached(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
