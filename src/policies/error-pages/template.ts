/** Texts with `{{ expression }}`. Inserted values are escaped for the form of the text, so that no value of a client becomes markup. */
import { messageOf } from "../../base/errors.ts";
import { escapeHtml } from "../../base/markup.ts";
import {
  type Activation,
  type CelEnvironment,
  CelError,
  type CelValue,
  type Expression,
  readsBody,
  toJson,
} from "../../cel/index.ts";
import { bodyBytes } from "../shared/expressions.ts";
import type { Form } from "./schema.ts";

const OPEN = "{{";
const CLOSE = "}}";

/** How a page shows a value; undefined = the expression has failed. */
const WRITERS: Readonly<Record<Form, (value: CelValue | undefined) => string>> = {
  html: (value) => escapeHtml(textOf(value)),
  json: (value) => JSON.stringify(value === undefined ? null : toJson(value)),
  text: textOf,
};

/** A page as it is sent. */
interface Rendered {
  readonly bytes: Buffer;
  /** The expressions that have failed, with the reasons; their places are empty. */
  readonly failures: readonly string[];
}

export type Template = (variables: () => Activation) => Rendered;

/**
 * Compiles a page. Throws an Error, with the line of the page, for an expression that does not compile or reads a body, for one that
 * does not end, and for JSON that is not valid.
 */
export function compileTemplate(page: string, form: Form, cel: CelEnvironment): Template {
  const { texts, expressions } = split(page, cel);
  if (form === "json") checkJson(texts);
  if (expressions.length === 0) {
    const fixed: Rendered = { bytes: Buffer.from(page), failures: [] };
    return () => fixed;
  }
  const write = WRITERS[form];
  return (variables) => {
    const activation = variables();
    const failures: string[] = [];
    const values = expressions.map((expression) => {
      try {
        return write(expression.evaluate(activation));
      } catch (error) {
        failures.push(`${expression.text}: ${whatOf(error)}`);
        return write(undefined);
      }
    });
    return { bytes: Buffer.from(texts.map((text, i) => text + (values[i] ?? "")).join("")), failures };
  };
}

/** The texts around the expressions: one more than there are expressions. */
function split(page: string, cel: CelEnvironment): { readonly texts: string[]; readonly expressions: Expression[] } {
  const texts: string[] = [];
  const expressions: Expression[] = [];
  let from = 0;
  for (let at = page.indexOf(OPEN); at !== -1; at = page.indexOf(OPEN, from)) {
    texts.push(page.slice(from, at));
    const line = page.slice(0, at).split("\n").length;
    const end = endOf(page, at + OPEN.length);
    if (end === -1) throw new Error(`line ${line}: ${OPEN} has no ${CLOSE}; write {{ "{{" }} for the text {{`);
    expressions.push(compile(page.slice(at + OPEN.length, end).trim(), line, cel));
    from = end + CLOSE.length;
  }
  texts.push(page.slice(from));
  return { texts, expressions };
}

/** The end of the expression at `from`: the first closing braces outside of strings. -1 = there are none. */
function endOf(page: string, from: number): number {
  const token = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\}\}/g;
  token.lastIndex = from;
  for (let found = token.exec(page); found !== null; found = token.exec(page))
    if (found[0] === CLOSE) return found.index;
  return -1;
}

function compile(text: string, line: number, cel: CelEnvironment): Expression {
  let expression: Expression;
  try {
    expression = cel.compileExpression(text, "response");
  } catch (error) {
    throw new Error(`line ${line}: {{ ${text} }}: ${whatOf(error)}`, { cause: error });
  }
  // The gateway would have to hold every body, in case a request fails.
  if (readsBody(expression, "request") || readsBody(expression, "response"))
    throw new Error(`line ${line}: {{ ${text} }}: pages cannot read a body; use other fields`);
  return expression;
}

/** Without the line of the expression, which is one of many in a page. */
function whatOf(error: unknown): string {
  return error instanceof CelError ? error.what : messageOf(error);
}

/** Values have quotes of their own, so an expression inside of quotes is found here too. */
function checkJson(texts: readonly string[]): void {
  try {
    JSON.parse(texts.join('""'));
  } catch (error) {
    const hint =
      texts.length > 1 ? '; write expressions without quotes around them, such as {"path": {{ request.path }}}' : "";
    throw new Error(`is not valid JSON: ${messageOf(error)}${hint}`, { cause: error });
  }
}

/** Text as it is, lists and maps as JSON, nothing for null. */
function textOf(value: CelValue | undefined): string {
  return value === undefined ? "" : Buffer.from(bodyBytes(value)).toString();
}
