/**
 * Characters that a terminal or an editor interprets: controls (C0, DEL, C1), line separators, bidirectional controls, and zero-width
 * characters, which make two different texts look the same. Tabs and line breaks stay.
 */
const UNSAFE = /(?![\t\n])[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** Replaces them with `\u` escapes, so that JSON keeps its meaning. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
