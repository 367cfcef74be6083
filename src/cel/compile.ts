import { EvaluationError, ParseError, type ParseResult, TypeError as TypeMismatch } from "@marcbachmann/cel-js";
import type { Activation } from "./activation.ts";
import { CelError } from "./cel-error.ts";
import { ENVIRONMENTS, MATCHES } from "./environment.ts";
import { prepare } from "./prepare.ts";
import { joinHeaders, RequestVariable } from "./request-view.ts";
import { CelMap } from "./values/map.ts";
import { CelTimestamp, type CelValue } from "./values/types.ts";
import { type Scope, VARIABLES, variableNames } from "./variables.ts";

const MAX_LENGTH = 4096;

/** An expression compiled once; holds no state of an evaluation. */
export interface Expression {
  readonly text: string;
  /** The CEL type of its value, as far as it is known without a request: `bool`, `string`, …, or `dyn`. */
  readonly type: string;
  /** Variables that it may read, and the bodies: `request`, `request.body`, `request.bodyPrefix`, `response.body`, `jwt`, … */
  readonly reads: ReadonlySet<string>;
  /** Throws CelError, for example when a header is missing. */
  evaluate(activation: Activation): CelValue;
  /** True only when the value is `true`: an error or any other value is false. */
  matches(activation: Activation): boolean;
}

/**
 * Compiles a CEL expression of at most 4096 characters. Throws CelError for syntax, unknown names, types that do not fit,
 * patterns that are not RE2, and expressions that could run for long.
 */
export function compileExpression(text: string, scope: Scope = "arrival"): Expression {
  if (text.length > MAX_LENGTH)
    throw new CelError(`the expression has ${text.length} characters, at most ${MAX_LENGTH} are allowed`, text);
  const program = parse(text, scope);
  prepare(program.ast, text);
  const { valid, type = "dyn", error } = program.check();
  if (!valid) throw asCelError(error, text, scope);
  return new CompiledExpression(text, type, scope, program);
}

/** Like compileExpression, for expressions that decide: one that can never be true or false is a CelError. */
export function compileCondition(text: string, scope: Scope = "arrival"): Expression {
  const expression = compileExpression(text, scope);
  if (expression.type !== "bool" && !expression.type.startsWith("dyn"))
    throw new CelError(`the condition gives a value of type ${expression.type} where true or false is needed`, text, 0);
  return expression;
}

class CompiledExpression implements Expression {
  readonly text: string;
  readonly type: string;
  readonly reads: ReadonlySet<string>;
  readonly #scope: Scope;
  readonly #program: ParseResult;

  constructor(text: string, type: string, scope: Scope, program: ParseResult) {
    this.text = text;
    this.type = type;
    this.reads = readsOf(text, scope);
    this.#scope = scope;
    this.#program = program;
  }

  evaluate(activation: Activation): CelValue {
    try {
      return adopt(this.#program(contextOf(activation)));
    } catch (error) {
      throw asCelError(error, this.text, this.#scope);
    }
  }

  matches(activation: Activation): boolean {
    try {
      return this.#program(contextOf(activation)) === true;
    } catch {
      return false;
    }
  }
}

function parse(text: string, scope: Scope): ParseResult {
  try {
    return ENVIRONMENTS[scope].parse(text);
  } catch (error) {
    throw asCelError(error, text, scope);
  }
}

function asCelError(error: unknown, text: string, scope: Scope): CelError {
  if (error instanceof ParseError || error instanceof EvaluationError || error instanceof TypeMismatch) {
    const { code, summary, range } = error;
    return new CelError(explain(code, summary, scope), text, range?.start, error);
  }
  const why = error instanceof Error ? error.message : String(error);
  return new CelError(why, text, undefined, error);
}

function explain(code: string, summary: string, scope: Scope): string {
  if (summary === "Unexpected token: EOF") return "the expression is not complete";
  if (code === "unknown_variable") return `${summary}; known here: ${variableNames(scope).join(", ")}`;
  return summary.replaceAll(MATCHES, "matches");
}

function readsOf(text: string, scope: Scope): ReadonlySet<string> {
  const names = VARIABLES[scope].filter((name) => new RegExp(`\\b${name}\\b`).test(text));
  const bodies = ["request.body", "request.bodyPrefix", "response.body", "response.bodyPrefix"];
  return new Set([...names, ...bodies.filter((name) => new RegExp(`${name}\\b`).test(text))]);
}

function contextOf(activation: Activation): Record<string, unknown> {
  const { request, response, source, destination } = activation;
  const variable = new RequestVariable();
  if (request !== undefined) variable.reset(request);
  return {
    ...activation,
    request: request === undefined ? undefined : variable,
    response: response && {
      code: BigInt(response.status),
      ...(response.grpcStatus !== undefined && { grpcStatus: BigInt(response.grpcStatus) }),
      headers: joinHeaders({ authority: "", headers: response.headers }),
      body: response.body,
      bodyPrefix: response.bodyPrefix ?? response.body,
    },
    source: source && { ...source, port: BigInt(source.port), rawPort: BigInt(source.rawPort) },
    destination: destination && { ...destination, port: BigInt(destination.port) },
  };
}

function adopt(value: unknown): CelValue {
  if (value instanceof Date) return CelTimestamp.fromDate(value);
  if (Array.isArray(value)) return value.map(adopt);
  if (!(value instanceof Map)) return value as CelValue;
  const map = new CelMap();
  for (const [key, item] of value) map.add(adopt(key), adopt(item));
  return map;
}
