import type { EvaluatedPart, Evaluation } from "../rehearsal/evaluate.ts";

/** A part of an expression with its value. */
interface EvaluatedLine {
  /** 0: the whole expression. */
  readonly depth: number;
  /** As it is written, in one line. */
  readonly text: string;
  /** The value as JSON, or the reason for its absence. */
  readonly value: string;
  /** The type of the value; absent without a value. */
  readonly type?: string;
}

/**
 * The whole expression, then its parts, each below the one that contains it, and the turns of loops with theirs. Empty if the expression does
 * not compile.
 */
export function evaluatedLines(expression: string, evaluation: Evaluation): EvaluatedLine[] {
  const { type, value, problem, needs = [], parts } = evaluation;
  if (type === undefined) return [];
  const why = problem?.what ?? (needs.length > 0 ? "not known" : "too large to be shown");
  return [
    line(0, oneLine(expression), { value, type, error: why }),
    ...linesOf(expression, parts, 1),
    ...linesOfTurns(expression, evaluation, 1),
  ];
}

function linesOf(expression: string, parts: readonly EvaluatedPart[], depth: number): EvaluatedLine[] {
  const lines: EvaluatedLine[] = [];
  const around: EvaluatedPart[] = [];
  /** Ends the parts that end before an offset. */
  const end = (before: number): void => {
    for (let last = around.at(-1); last !== undefined && last.to < before; last = around.at(-1)) {
      around.pop();
      lines.push(...linesOfTurns(expression, last, depth + around.length + 1));
    }
  };
  for (const part of parts) {
    end(part.to);
    lines.push(line(depth + around.length, oneLine(expression.slice(part.from, part.to)), part));
    around.push(part);
  }
  end(Number.POSITIVE_INFINITY);
  return lines;
}

function linesOfTurns(
  expression: string,
  { turns = [], moreTurns = 0 }: Pick<EvaluatedPart, "turns" | "moreTurns">,
  depth: number,
): EvaluatedLine[] {
  const lines = turns.flatMap(({ variables, parts }) => [
    ...variables.map(({ name, ...result }) => line(depth, name, { error: "too large to be shown", ...result })),
    ...linesOf(expression, parts, depth + 1),
  ]);
  return moreTurns === 0 ? lines : [...lines, { depth, text: "…", value: `${moreTurns} more` }];
}

function line(
  depth: number,
  text: string,
  {
    value,
    type,
    error = "",
  }: { readonly value?: unknown; readonly type?: string | undefined; readonly error?: string },
): EvaluatedLine {
  if (value === undefined) return { depth, text, value: error };
  return { depth, text, value: JSON.stringify(value), ...(type !== undefined && { type }) };
}

function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}
