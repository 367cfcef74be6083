/** Text that goes to a terminal: its width in columns, wrapping, and making it harmless. */

const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /\p{Mark}|\p{Default_Ignorable_Code_Point}/u;

/** Columns of one code point (Unicode annex 11, near enough for a pane that also truncates). */
function widthOf(character: string): number {
  if (character <= "\u024f") return 1;
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/**
 * Replaces control characters, so that a header or body in a trace cannot move the cursor or rewrite the title of the
 * terminal that shows it. Tabs become two spaces; line breaks stay.
 */
export function harmless(text: string): string {
  return text
    .replaceAll("\t", "  ")
    .replaceAll("\r\n", "\n")
    .replace(/[\p{Cc}\p{Bidi_Control}\u200b\u2060-\u2064\ufeff]/gu, (control) => {
      if (control === "\n") return control;
      // The block of pictures of control characters: ␛ for escape.
      return control < " " ? String.fromCharCode(0x2400 + control.charCodeAt(0)) : "\ufffd";
    });
}

/** Cuts one line into pieces of at most `width` columns. An empty line gives one empty piece. */
export function wrap(line: string, width: number): string[] {
  if (line.length <= width && /^[\u0020-\u024f]*$/.test(line)) return [line];
  const pieces: string[] = [];
  let piece = "";
  let used = 0;
  for (const character of line) {
    const columns = widthOf(character);
    if (used + columns > width && piece !== "") {
      pieces.push(piece);
      piece = "";
      used = 0;
    }
    piece += character;
    used += columns;
  }
  pieces.push(piece);
  return pieces;
}

/**
 * Cuts one line into pieces of at most `width` columns, between words where one ends in the second half of a piece. All but
 * the first begin with `indent` spaces, at most half the width.
 */
export function wrapHanging(line: string, width: number, indent: number): string[] {
  const margin = " ".repeat(Math.min(indent, Math.floor(width / 2)));
  const pieces = [cutAtWord(line, width)];
  let rest = line.slice(pieces[0]?.length).trimStart();
  while (rest !== "") {
    const piece = cutAtWord(rest, width - margin.length);
    pieces.push(margin + piece);
    rest = rest.slice(piece.length).trimStart();
  }
  return pieces;
}

function cutAtWord(line: string, width: number): string {
  // Four code units a column are enough for any text, and spare the rest of a long line.
  const [piece = ""] = wrap(line.slice(0, 4 * width), width);
  const space = piece.lastIndexOf(" ");
  if (piece.length === line.length || line[piece.length] === " " || space * 2 < piece.length) return piece;
  return piece.slice(0, space);
}

/** `line` in exactly `width` columns: padded with spaces, or cut with `…` at the end. */
export function fit(line: string, width: number): string {
  if (width <= 0) return "";
  const [whole = ""] = wrap(line, width);
  if (whole === line) return line + " ".repeat(width - columnsOf(line));
  const [cut = ""] = wrap(line, width - 1);
  return `${cut}…${" ".repeat(Math.max(0, width - 1 - columnsOf(cut)))}`;
}

/** The width of a line in columns. */
export function columnsOf(line: string): number {
  let columns = 0;
  for (const character of line) columns += widthOf(character);
  return columns;
}

/** At most `most` characters, the last three dots when something was cut. */
export function clip(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 3)}...`;
}

/** Microseconds for people: `289 µs`, `2.385 ms`, `1.25 s`. */
export function duration(microseconds: number): string {
  if (microseconds < 1000) return `${microseconds} µs`;
  if (microseconds < 1_000_000) return `${Number((microseconds / 1000).toFixed(3))} ms`;
  return `${Number((microseconds / 1_000_000).toFixed(3))} s`;
}

/** Microseconds as milliseconds with three digits, for columns; empty when unknown. */
export function milliseconds(microseconds: number | undefined): string {
  return microseconds === undefined ? "" : (microseconds / 1000).toFixed(3);
}
