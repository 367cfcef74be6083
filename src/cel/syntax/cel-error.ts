/** Where in an expression something is wrong. `offset` counts UTF-16 units from 0, `line` and `column` from 1. */
interface Position {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
}

/** Characters of the expression shown on each side of the position. */
const CONTEXT = 60;

/** An expression that does not compile or whose evaluation failed. The message shows the line with a caret below the position. */
export class CelError extends Error {
  /** The message without the line. */
  readonly what: string;
  readonly position: Position | undefined;
  /** The expression reads a value that this request does not have, such as a missing header. */
  readonly absent: boolean;

  /** `offset`: position in `text` that `what` refers to; without it, the message is `what` alone. */
  constructor(what: string, text: string, offset?: number, cause?: unknown, absent = false) {
    const position = offset === undefined ? undefined : positionOf(text, Math.min(offset, text.length));
    super(position === undefined ? what : `${what}\n${excerpt(text, position)}`, { cause });
    this.name = "CelError";
    this.what = what;
    this.position = position;
    this.absent = absent;
  }
}

/** Help for the author of an unknown name. */
export interface Hint {
  /** The end of the message, such as `; did you mean x?`. */
  readonly help: string;
  /** The known name that was probably meant. */
  readonly suggestion?: string;
}

/** A name that is not known in the scope of the expression. */
export class UnknownVariableError extends CelError {
  readonly suggestion: Hint["suggestion"];

  constructor(name: string, { help, suggestion }: Hint, text: string, offset: number) {
    super(`unknown variable ${name}${help}`, text, offset);
    this.suggestion = suggestion;
  }
}

function positionOf(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { offset, line: before.split("\n").length, column: offset - lineStart + 1 };
}

/** The line of the position, cut when it is long, with a caret; the caret's indent keeps tabs so that it lines up. */
function excerpt(text: string, { offset, line, column }: Position): string {
  const lineStart = offset - column + 1;
  const lineEnd = text.indexOf("\n", offset);
  const from = Math.max(lineStart, offset - CONTEXT);
  const to = Math.min(lineEnd === -1 ? text.length : lineEnd, offset + CONTEXT);
  const shown = text.slice(from, to).trimEnd();
  const indent = text.slice(from, offset).replace(/[^\t]/g, " ");
  return `  ${shown}\n  ${indent}^ line ${line}, column ${column}`;
}
