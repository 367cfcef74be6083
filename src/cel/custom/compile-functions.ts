/** `customFunctions` of a configuration: from text to functions that expressions call, compiled once for all of them. */
import { check } from "../check/checker.ts";
import {
  type CustomFunction,
  type CustomFunctions,
  formatSignature,
  NO_FUNCTIONS,
} from "../environment/custom-function.ts";
import type { Checked, Environment } from "../environment/environment.ts";
import { DYN, list } from "../environment/types.ts";
import { compileNode } from "../evaluate/compile.ts";
import { FUNCTIONS } from "../functions/functions.ts";
import { CelError } from "../syntax/cel-error.ts";
import { isMacro } from "../syntax/macros.ts";
import { fail } from "../values/failure.ts";
import { readsOf } from "../variables/reads.ts";
import { VARIABLES } from "../variables/variables.ts";
import { orderByCalls } from "./order.ts";
import { type Definition, readDefinitions } from "./read-definitions.ts";

/** Limits of all definitions together: characters, and number of functions. */
const MAX_LENGTH = 65_536;
const MAX_FUNCTIONS = 256;

/** The result of reading definitions. */
interface ReadFunctions {
  /** Functions with an error in their body are included, so that the error is not reported again for their callers. */
  readonly functions: CustomFunctions;
  readonly problems: readonly CelError[];
  /** False: the text is not a list of definitions, so the names of its functions are unknown. */
  readonly readable: boolean;
}

/**
 * Reads functions written as `name(a, rest...) { expression }` and `this.name(a) { expression }`
 * (docs/expressions.md#custom-functions), and compiles them. Every problem is in the result, each with its place in `text`.
 */
export function readFunctions(text: string): ReadFunctions {
  const problems: CelError[] = [];
  const report = (problem: CelError): void => void problems.push(problem);
  let definitions: readonly Definition[];
  try {
    if (text.length > MAX_LENGTH)
      throw new CelError(`the functions have ${text.length} characters, at most ${MAX_LENGTH} are allowed`, text);
    definitions = readDefinitions(text, report);
    if (definitions.length > MAX_FUNCTIONS)
      throw new CelError(`there are ${definitions.length} functions, at most ${MAX_FUNCTIONS} are allowed`, text);
  } catch (error) {
    report(asCelError(error));
    return { functions: NO_FUNCTIONS, problems, readable: false };
  }
  const named = definitions.filter((definition, index) => {
    const problem = nameProblem(definition, definitions.slice(0, index));
    if (problem !== undefined) report(new CelError(problem, text, definition.at));
    return problem === undefined;
  });
  const { order, recursive } = orderByCalls(named, text, report);
  const functions = new Map<string, CustomFunction[]>();
  const environment: Environment = {
    variables: VARIABLES.response,
    functions: FUNCTIONS,
    custom: functions,
    container: "",
    lenient: false,
  };
  for (const definition of order) {
    const compiled = recursive.has(definition) ? broken(definition) : compileOne(definition, text, environment, report);
    functions.set(definition.name, [...(functions.get(definition.name) ?? []), compiled]);
  }
  return { functions, problems, readable: true };
}

/** As `readFunctions`, for definitions that have been validated. Throws the first CelError if there is one. */
export function compileFunctions(text: string): CustomFunctions {
  const { functions, problems } = readFunctions(text);
  const [problem] = problems;
  if (problem !== undefined) throw problem;
  return functions;
}

function nameProblem(definition: Definition, before: readonly Definition[]): string | undefined {
  const { name } = definition;
  if (isMacro(name)) return `${name} is a macro of CEL; choose another name`;
  if (isBuiltIn(name)) return `there is a function ${name} already; choose another name`;
  const twin = before.some(
    (other) =>
      other.name === name &&
      other.member === definition.member &&
      other.variadic === definition.variadic &&
      other.params.length === definition.params.length,
  );
  return twin ? `${formatSignature(definition)} is defined above with as many parameters` : undefined;
}

/** Includes namespaces of functions, such as `base64`. */
function isBuiltIn(name: string): boolean {
  if (name === "variables" || FUNCTIONS.has(name)) return true;
  return [...FUNCTIONS.keys()].some((known) => known.startsWith(`${name}.`));
}

function compileOne(
  definition: Definition,
  text: string,
  environment: Environment,
  report: (problem: CelError) => void,
): CustomFunction {
  const { name, member, params, variadic, body } = definition;
  if (body === undefined) return broken(definition);
  const locals = params.map((param, index) => ({
    name: param,
    type: variadic && index === params.length - 1 ? list(DYN) : DYN,
  }));
  try {
    const checked = check(body, text, environment, locals);
    return {
      name,
      member,
      params,
      variadic,
      type: checked.type,
      // What `variables()` reads depends on where the function is called.
      reads: readsOf(body, checked, []),
      readsAll: readsAll(checked),
      needs: needsOf(checked),
      loops: checked.loops,
      run: compileNode(body, checked, text),
    };
  } catch (error) {
    report(asCelError(error));
    return broken(definition);
  }
}

function broken({ name, member, params, variadic }: Definition): CustomFunction {
  const failure = fail("the function cannot be used");
  const reads = new Set<string>();
  const run: CustomFunction["run"] = () => failure;
  return { name, member, params, variadic, type: DYN, reads, readsAll: false, needs: new Map(), loops: 0, run };
}

/** Of calls only `variables()` is a reference. */
function readsAll({ references, customCalls }: Checked): boolean {
  if ([...references.keys()].some((node) => node.kind === "call")) return true;
  return [...customCalls.values()].some((call) => call.definition.readsAll);
}

function needsOf({ references, customCalls }: Checked): CustomFunction["needs"] {
  const needs = new Map<string, readonly CustomFunction[]>();
  for (const [node, reference] of references)
    if (reference.kind === "variable" && node.kind !== "call") needs.set(reference.name, []);
  for (const { definition } of customCalls.values())
    for (const [variable, through] of definition.needs)
      if (!needs.has(variable)) needs.set(variable, [definition, ...through]);
  return needs;
}

function asCelError(error: unknown): CelError {
  if (error instanceof CelError) return error;
  throw error;
}
