import { isDeepStrictEqual } from "node:util";
import { compileIn } from "../compile.ts";
import { NO_FUNCTIONS } from "../environment/custom-function.ts";
import type { Environment, Variable } from "../environment/environment.ts";
import type { Overload } from "../environment/overload.ts";
import { formatType } from "../environment/types.ts";
import { FUNCTIONS } from "../functions/functions.ts";
import { CelError } from "../syntax/cel-error.ts";
import { adopt, isList, isMap, kindOf, mapGet, mapKeys } from "../values/access.ts";
import { fail } from "../values/failure.ts";
import { CelUint, type CelValue } from "../values/types.ts";
import type { Case } from "./cases.ts";
import { typeFrom, valueFrom } from "./translate.ts";

/** Runs one case; undefined when it passes, else what went wrong. */
export function runCase(test: Case): string | undefined {
  let value: CelValue;
  try {
    const expression = compileIn(environmentOf(test), test.expr);
    const deduced = test.typedResult?.deducedType;
    if (deduced !== undefined && expression.type !== formatType(typeFrom(deduced)))
      return `type ${expression.type} instead of ${formatType(typeFrom(deduced))}`;
    if (test.checkOnly === true) return undefined;
    value = expression.evaluate({});
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return test.evalError !== undefined || test.anyEvalErrors !== undefined ? undefined : error.message.split("\n")[0];
  }
  if (test.evalError !== undefined || test.anyEvalErrors !== undefined) return "a value instead of an error";
  const wanted =
    test.typedResult === undefined
      ? test.value === undefined
        ? true
        : valueFrom(test.value)
      : test.typedResult.result === undefined
        ? undefined
        : valueFrom(test.typedResult.result);
  if (wanted === undefined) return "the expected value is a message";
  if (isDeepStrictEqual(plain(value), plain(wanted))) return undefined;
  return `${show(value)} instead of ${show(wanted)}`;
}

function show(value: CelValue): string {
  return JSON.stringify(plain(value)) ?? "nothing";
}

/** A value with its types, in a form that can be compared: entries of maps sorted, as their order does not count. */
function plain(value: CelValue): unknown {
  if (isList(value)) return value.map((item) => plain(adopt(item)));
  if (isMap(value)) {
    const entries = mapKeys(value).map((key) => [plain(key), plain(mapGet(value, key) ?? null)]);
    return { map: entries.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) };
  }
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("hex") };
  const text =
    value instanceof CelUint
      ? value.value
      : typeof value === "object" && value !== null
        ? Object.values(value).map(String)
        : value;
  return { kind: kindOf(value), text: Object.is(text, -0) ? "-0" : String(text) };
}

function environmentOf(test: Case): Environment {
  const variables = new Map<string, Variable>();
  const functions = new Map(FUNCTIONS);
  for (const [name, { value }] of Object.entries(test.bindings ?? {})) {
    const bound = value === undefined ? undefined : valueFrom(value);
    variables.set(name, { type: typeFrom(undefined), read: () => bound });
  }
  for (const { name, ident, function: declared } of test.typeEnv ?? []) {
    if (ident !== undefined) {
      const read = variables.get(name)?.read ?? (() => undefined);
      variables.set(name, { type: typeFrom(ident.type), read });
    }
    const overloads = declared?.overloads.map(
      (overload): Overload => ({
        name,
        member: overload.isInstanceFunction === true,
        params: (overload.params ?? []).map(typeFrom),
        result: typeFrom(overload.resultType),
        run: () => fail(`${name} is declared only`),
      }),
    );
    if (overloads !== undefined) functions.set(name, overloads);
  }
  return {
    variables,
    functions,
    custom: NO_FUNCTIONS,
    container: test.container ?? "",
    lenient: test.disableCheck === true,
  };
}
