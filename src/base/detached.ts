/**
 * A copy of a text, for tables that outlive a request: a part of a text is kept by the engine as a reference to the whole, so that a
 * short key could hold a body of megabytes.
 */
export function detached(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
