import { A, BOOL, list, optional } from "../check/types.ts";
import { missing } from "../evaluate/failure.ts";
import { adopt, isList, isMap, mapSize } from "../values/access.ts";
import { type CelList, CelOptional, CelUint, type CelValue } from "../values/types.ts";
import { fn, method, type Overload } from "./overload.ts";

/** Whether a value is the zero of its type: what `optional.ofNonZeroValue` makes none. */
function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === "" || value === 0 || value === 0n) return true;
  if (value instanceof CelUint) return value.value === 0n;
  if (value instanceof Uint8Array || isList(value)) return value.length === 0;
  return isMap(value) && mapSize(value) === 0;
}

/** Optional values: presence without null. `or` and `orValue` are compiled, so that they can stop early. */
export const OPTIONALS: readonly Overload[] = [
  fn("optional.of", [A], optional(A), (value: CelValue) => new CelOptional(value)),
  fn("optional.none", [], optional(A), () => CelOptional.NONE),
  fn("optional.ofNonZeroValue", [A], optional(A), (value: CelValue) =>
    isZero(value) ? CelOptional.NONE : new CelOptional(value),
  ),
  fn("optional.unwrap", [list(optional(A))], list(A), unwrap),
  method("unwrapOpt", [list(optional(A))], list(A), unwrap),
  method("hasValue", [optional(A)], BOOL, ({ value }: CelOptional) => value !== undefined),
  method("value", [optional(A)], A, ({ value }: CelOptional) =>
    value === undefined ? missing("optional.none() has no value") : value,
  ),
  method("or", [optional(A), optional(A)], optional(A), (a: CelOptional, b: CelOptional) =>
    a.value === undefined ? b : a,
  ),
  method("orValue", [optional(A), A], A, ({ value }: CelOptional, other: CelValue) =>
    value === undefined ? other : value,
  ),
];

/** The values of those that have one. */
function unwrap(items: CelList): CelValue {
  return items.flatMap((item) => {
    const value = adopt(item);
    return value instanceof CelOptional && value.value !== undefined ? [value.value] : [];
  });
}
