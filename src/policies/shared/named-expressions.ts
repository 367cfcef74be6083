import { type Activation, type CelEnvironment, type Expression, type Scope, toJson, toText } from "../../cel/index.ts";
import { sendableText } from "./cel-output.ts";

/** Expressions by the name of what they give. */
export type NamedExpressions = readonly (readonly [name: string, expression: Expression])[];

/** Throws CelError for expressions that cannot be used. */
export function compileAll(
  texts: Readonly<Record<string, string>>,
  scope: Scope,
  cel: CelEnvironment,
): NamedExpressions {
  return Object.entries(texts).map(([name, text]) => [name, cel.compileExpression(text, scope)] as const);
}

/** Values as JSON has them, by name; an expression that fails is left out, so that who reads them sees that one is missing. */
export function evaluateAll(expressions: NamedExpressions, variables: Activation): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, expression] of expressions) {
    try {
      values[name] = toJson(expression.evaluate(variables));
    } catch {
      // Left out.
    }
  }
  return values;
}

/** A value as text that a head can carry. Throws an Error when it has none. */
export function textOf(expression: Expression, variables: Activation): string {
  return sendableText(toText(expression.evaluate(variables)) ?? "");
}
