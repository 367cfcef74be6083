import type { Evaluation } from "../rehearsal/evaluate.ts";

/** A part of an expression with its value. */
interface EvaluatedLine {
  /** 0: the whole expression. */
  readonly depth: number;
  /** As it is written, in one line. */
  readonly text: string;
  /** The value as JSON, or the reason for its absence. */
  readonly value: string;
  /** Of the value; absent if there is none. */
  readonly type?: string;
}

/** The whole expression, then its parts, each below the one that contains it. Empty if the expression does not compile. */
export function evaluatedLines(expression: string, evaluation: Evaluation): EvaluatedLine[] {
  const { type, value, problem, needs = [], parts } = evaluation;
  if (type === undefined) return [];
  const why = problem?.what ?? (needs.length > 0 ? "not known" : "too large to be shown");
  const around: number[] = [];
  return [
    line(0, expression, { value, type, error: why }),
    ...parts.map(({ from, to, ...result }) => {
      while ((around.at(-1) ?? to) < to) around.pop();
      around.push(to);
      return line(around.length, expression.slice(from, to), result);
    }),
  ];
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
  const written = text.trim().replace(/\s+/g, " ");
  if (value === undefined) return { depth, text: written, value: error };
  return { depth, text: written, value: JSON.stringify(value), ...(type !== undefined && { type }) };
}
