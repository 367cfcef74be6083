/** A text as one word of a POSIX shell. Within single quotes, only a quote has a meaning. */
export function shellWord(text: string): string {
  return /^[\w./:@%+,-][\w./:@%+,=#-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
