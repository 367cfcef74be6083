/**
 * Schemas of CEL texts. They are compiled when the file is parsed, so that a mistake is reported at its place; what an
 * expression may name depends on the configuration, so the parser is given the environment (`parsingWith`).
 */
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { CelEnvironment, type Scope, STANDARD_ENVIRONMENT } from "../../cel/index.ts";

/** Throws an Error whose message says why a text cannot be used. */
type Compile = (text: string, cel: CelEnvironment) => unknown;

interface CelTextDef extends z.core.$ZodStringDef {
  readonly compile: Compile;
}

interface CelText extends z.ZodString {
  readonly _zod: z.ZodString["_zod"] & { readonly def: CelTextDef };
}

/** A string schema with access to what the caller of `parse` passes on, which checks do not have. */
const CelText: z.core.$constructor<CelText, CelTextDef> = z.core.$constructor("CelText", (schema, def) => {
  z.ZodString.init(schema, def);
  const { parse } = schema._zod;
  schema._zod.parse = (payload, context) => {
    parse(payload, context);
    if (payload.issues.length > 0) return payload;
    const text = String(payload.value);
    try {
      def.compile(text, environmentOf(context));
    } catch (error) {
      payload.issues.push({ code: "custom", input: text, message: messageOf(error), inst: schema });
    }
    return payload;
  };
});

/** The second argument of `parse` and `safeParse`: expressions may name what is in this environment. */
export function parsingWith(
  cel: CelEnvironment,
): z.core.ParseContext<z.core.$ZodIssue> & { readonly cel: CelEnvironment } {
  return { cel };
}

/** Without `parsingWith`, expressions may name what needs no configuration. */
function environmentOf(context: object): CelEnvironment {
  return "cel" in context && context.cel instanceof CelEnvironment ? context.cel : STANDARD_ENVIRONMENT;
}

/** A text that `compile` accepts. */
export function celText(compile: Compile): z.ZodString {
  return new CelText({ type: "string", compile });
}

/** CEL that gives a value. What `isConstant` accepts is not an expression. */
export function expression(scope: Scope, isConstant = (_text: string): boolean => false): z.ZodString {
  return celText((text, cel) => {
    if (isConstant(text)) return;
    try {
      cel.compileExpression(text, scope);
    } catch (error) {
      const message = messageOf(error);
      throw new Error(textHint(text, message) + message, { cause: error });
    }
  });
}

/** CEL that is true or false. */
export function condition(scope: Scope): z.ZodString {
  return celText((text, cel) => cel.compileCondition(text, scope));
}

/** Words where an expression is expected are usually meant as text. */
function textHint(text: string, message: string): string {
  const words = /^[A-Za-z0-9][\w./:-]*(?: [\w./:-]+)*$/.test(text);
  const unknown = message.startsWith("unknown variable") && !message.includes("did you mean");
  // `response.code` is an expression, although not one for this place.
  const meant = words && (text.includes(" ") || (unknown && !/^\w+\.\w/.test(text)));
  return meant ? `is a CEL expression, where text needs its own quotes; write '"${text}"' for the text: ` : "";
}
