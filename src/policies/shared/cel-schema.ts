import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { compileCondition, compileExpression, type Scope } from "../../cel/index.ts";

/**
 * CEL that gives a value; compiled where the file is read, so that a mistake is told with its place. What `isConstant`
 * accepts is no expression.
 */
export function expression(scope: Scope, isConstant = (_text: string): boolean => false): z.ZodString {
  return checked((text) => isConstant(text) || compileExpression(text, scope), textHint);
}

/** Words where an expression is expected are mostly meant as text. */
function textHint(text: string, message: string): string {
  const words = /^[A-Za-z0-9][\w./:-]*(?: [\w./:-]+)*$/.test(text);
  const unknown = message.startsWith("unknown variable") && !message.includes("did you mean");
  // `response.code` is an expression, although not one for this place.
  const meant = words && (text.includes(" ") || (unknown && !/^\w+\.\w/.test(text)));
  return meant ? `is a CEL expression, where text needs its own quotes; write '"${text}"' for the text: ` : "";
}

/** CEL that is true or false. */
export function condition(scope: Scope): z.ZodString {
  return checked((text) => compileCondition(text, scope));
}

function checked(
  compile: (text: string) => unknown,
  hint = (_text: string, _message: string): string => "",
): z.ZodString {
  return z.string().check((context) => {
    try {
      compile(context.value);
    } catch (error) {
      const message = messageOf(error);
      context.issues.push({ code: "custom", input: context.value, message: hint(context.value, message) + message });
    }
  });
}
