/**
 * The one reader of Cookie fields (RFC 6265 4.2.1): policies, expressions and redaction must parse cookies alike. Otherwise a
 * client could send one that a policy accepts and redaction does not recognize.
 */

/** One pair of a Cookie field. */
interface CookiePair {
  /** Text before the first `=`; without one, the whole pair. */
  readonly name: string;
  /** Text after the first `=`, with its quotes; undefined without one. */
  readonly value: string | undefined;
  /** The pair as it was sent, without the white space around it. */
  readonly text: string;
}

/** The pairs of one field, in order; without empty ones. White space around names and values is removed. */
export function cookiePairs(field: string): CookiePair[] {
  const pairs: CookiePair[] = [];
  for (const part of field.split(";")) {
    const text = trim(part);
    if (text === "") continue;
    const equals = text.indexOf("=");
    if (equals < 0) pairs.push({ name: text, value: undefined, text });
    else pairs.push({ name: trim(text.slice(0, equals)), value: trim(text.slice(equals + 1)), text });
  }
  return pairs;
}

/** The value of the first cookie of the name, without its quotes; undefined if no cookie of the name has a value. */
export function findCookie(field: string, name: string): string | undefined {
  const value = cookiePairs(field).find((pair) => pair.name === name && pair.value !== undefined)?.value;
  return value === undefined ? undefined : unquoted(value);
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

/** Removes spaces and tabs only: `String.trim` also removes the byte A0, in which UTF-8 text may end. */
function trim(text: string): string {
  let from = 0;
  let to = text.length;
  // By hand: a regular expression for trailing spaces would scan each run of spaces again from each of its characters.
  while (isSpace(text.charCodeAt(from))) from++;
  while (to > from && isSpace(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x09;
}
