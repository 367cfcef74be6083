/**
 * Schemas of CEL texts. Parsing compiles them, so a mistake is reported with its path, line and column. Which functions an
 * expression may call depends on the configuration, so callers pass the environment to the parser (`parsingWith`).
 */
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { CelEnvironment, type Scope, STANDARD_ENVIRONMENT, UnknownVariableError } from "../../cel/index.ts";

/** Throws an Error whose message explains why a text is not valid. */
type Compile = (text: string, cel: CelEnvironment) => unknown;

interface CelTextDef extends z.core.$ZodStringDef {
  readonly compile: Compile;
  readonly condition?: ConditionField;
}

/** A field for a condition, as lints read it from the schema. */
export interface ConditionField {
  readonly scope: Scope;
  /** What it means if the condition is always true or always false, such as `never applies`. */
  readonly constant: { readonly true: string; readonly false: string };
}

interface CelText extends z.ZodString {
  readonly _zod: z.ZodString["_zod"] & { readonly def: CelTextDef };
}

/** A string schema that sees the context which the caller passes to `parse`; refinements of zod do not. */
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
      const params = { withoutText: INVALID };
      payload.issues.push({ code: "custom", input: text, message: messageOf(error), params, inst: schema });
    }
    return payload;
  };
});

/** The message for fields with secrets: other messages quote the text, or names in it, such as a password without quotes. */
const INVALID =
  "is not a valid CEL expression, and is not shown, because it may be a secret; text needs its own quotes: '\"text\"'";

/**
 * The second argument of `parse` and `safeParse`: expressions compile in this environment. Issues about types have no message unless
 * the schema has one, so that `reportIssues` can tell.
 */
export function parsingWith(
  cel: CelEnvironment,
): z.core.ParseContext<z.core.$ZodIssue> & { readonly cel: CelEnvironment } {
  return { cel, error: ({ code }) => (code === "invalid_type" ? "" : undefined) };
}

/** Without `parsingWith`, expressions compile in the standard environment, without functions of the configuration. */
function environmentOf(context: object): CelEnvironment {
  return "cel" in context && context.cel instanceof CelEnvironment ? context.cel : STANDARD_ENVIRONMENT;
}

/** A text that `compile` accepts. */
export function celText(compile: Compile): z.ZodString {
  return new CelText({ type: "string", compile });
}

/** CEL with any result. Text that `isConstant` accepts is a constant and not compiled. */
export function expression(scope: Scope, isConstant = (_text: string): boolean => false): z.ZodString {
  return celText((text, cel) => {
    if (isConstant(text)) return;
    try {
      cel.compileExpression(text, scope);
    } catch (error) {
      throw new Error(textHint(text, error) + messageOf(error), { cause: error });
    }
  });
}

/** CEL with a boolean result. `constant` tells the author what a condition does that is always true or always false. */
export function condition(scope: Scope, constant: ConditionField["constant"]): z.ZodString {
  const compile: Compile = (text, cel) => cel.compileCondition(text, scope);
  return new CelText({ type: "string", compile, condition: { scope, constant } });
}

/** The conditions of rules that allow or deny `what`, such as requests. */
export function ruleConditions(
  scope: Scope,
  what: string,
): Readonly<Record<"allow" | "deny" | "require", z.ZodString>> {
  return {
    allow: condition(scope, { true: `allows all ${what}`, false: "allows none" }),
    deny: condition(scope, { true: `denies all ${what}`, false: "denies none" }),
    require: condition(scope, { true: "requires nothing", false: `denies all ${what}` }),
  };
}

/** A hint for plain words in place of an expression, which are usually meant as text. */
function textHint(text: string, error: unknown): string {
  const words = /^[A-Za-z0-9][\w./:-]*(?: [\w./:-]+)*$/.test(text);
  const unknown = error instanceof UnknownVariableError && error.suggestion === undefined;
  // `response.code` looks like an expression, though not one for this scope.
  const meant = words && (text.includes(" ") || (unknown && !/^\w+\.\w/.test(text)));
  return meant ? `is a CEL expression, where text needs its own quotes; write '"${text}"' for the text: ` : "";
}
