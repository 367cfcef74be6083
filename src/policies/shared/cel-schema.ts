import { z } from "zod";
import { compileCondition, compileExpression, type Scope } from "../../cel/index.ts";

/**
 * CEL that gives a value; compiled where the file is read, so that a mistake is told with its place. What `isConstant`
 * accepts is no expression.
 */
export function expression(scope: Scope, isConstant = (_text: string): boolean => false): z.ZodString {
  return checked((text) => isConstant(text) || compileExpression(text, scope));
}

/** CEL that is true or false. */
export function condition(scope: Scope): z.ZodString {
  return checked((text) => compileCondition(text, scope));
}

function checked(compile: (text: string) => unknown): z.ZodString {
  return z.string().check((context) => {
    try {
      compile(context.value);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      context.issues.push({ code: "custom", input: context.value, message });
    }
  });
}
