import { formatSignature } from "../custom/custom-function.ts";
import type { Call } from "../syntax/ast.ts";
import type { CelValue } from "../values/types.ts";
import { charge } from "./budget.ts";
import type { Compilation, Evaluator } from "./evaluator.ts";
import { Failure } from "./failure.ts";

/** Steps that a call counts as, besides those of the body: functions that each call others twice are loops too. */
const CALL = 32;

/** Calls of functions that the configuration defines. Arguments are evaluated first, each once; an error of one is the value. */
export function compileCustomCall(node: Call, { checked, compile }: Compilation): Evaluator | undefined {
  const call = checked.customCalls.get(node);
  if (call === undefined) return undefined;
  const { definition, args } = call;
  const evaluators = args.map(compile);
  const fixed = definition.params.length - (definition.variadic ? 1 : 0);
  const place = `in ${formatSignature(definition)}: `;
  return (activation, slots) => {
    charge(CALL);
    const frame: CelValue[] = [];
    for (const evaluate of evaluators) {
      const value = evaluate(activation, slots);
      if (value instanceof Failure) return value;
      frame.push(value);
    }
    if (definition.variadic) frame.push(frame.splice(fixed));
    const value = definition.run(activation, frame);
    // The place in the body is none of this expression's.
    return value instanceof Failure ? new Failure(place + value.what, node.at, value.absent) : value;
  };
}
