/** Lines for people: in a terminal wrapped to its width and colored, elsewhere as they are. */
import { styleText } from "node:util";
import { escapeUnsafe } from "../../base/terminal-text.ts";
import { INDENT, plainLine, SIGNS, type StepLine } from "../../report/step-lines.ts";
import { columnsOf, wrapHanging } from "../../report/text.ts";
import { type Context, write } from "./context.ts";

type Style = Parameters<typeof styleText>[0];

const STYLES: Readonly<Record<keyof typeof SIGNS, Style>> = {
  yes: "green",
  no: "red",
  unknown: "yellow",
  skipped: "dim",
  notReached: "dim",
};

/** Where lines go: its width, and whether it shows colors. */
interface Screen {
  readonly columns: number;
  readonly colors: boolean;
}

/** Writes lines to stdout. */
export async function writeLines({ stdout, env }: Context, lines: readonly StepLine[]): Promise<void> {
  const { isTTY, columns = 80 } = stdout;
  if (isTTY !== true) return await write(stdout, lines.map((line) => `${plainLine(line)}\n`).join(""));
  const colors = (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  // Text from outside has been escaped.
  await write(
    stdout,
    Buffer.from(
      lines
        .flatMap((line) => screenLines(line, { columns, colors }))
        .map((line) => `${line}\n`)
        .join(""),
    ),
  );
}

/** A line as a terminal shows it: text that does not fit continues below itself, a place that does not fit gets a line of its own. */
function screenLines({ depth, result, text, place }: StepLine, { columns, colors }: Screen): string[] {
  const styled = (style: Style, part: string): string =>
    colors ? styleText(style, part, { validateStream: false }) : part;
  const indent = INDENT * depth;
  const sign = result === undefined ? "" : `${SIGNS[result]} `;
  const hanging = indent + (result === undefined ? INDENT / 2 : INDENT);
  const whole = `${" ".repeat(indent)}${sign}${escapeUnsafe(text)}`;
  const pieces = wrapHanging(whole, columns, hanging);
  const isFaint = result === "skipped" || result === "notReached";
  const shown = pieces.map((piece, i) => {
    if (isFaint) return styled("dim", piece);
    if (result === undefined) return depth === 0 ? styled("bold", piece) : piece;
    if (i > 0) return piece;
    const start = indent + sign.length;
    return `${piece.slice(0, indent)}${styled(STYLES[result], sign)}${piece.slice(start)}`;
  });
  if (place === undefined) return shown;
  const where = escapeUnsafe(place);
  const last = pieces.at(-1) ?? "";
  if (columnsOf(last) + 2 + columnsOf(where) <= columns)
    return [...shown.slice(0, -1), `${shown.at(-1)}  ${styled("dim", where)}`];
  return [
    ...shown,
    ...wrapHanging(`${" ".repeat(hanging)}${where}`, columns, hanging).map((line) => styled("dim", line)),
  ];
}
