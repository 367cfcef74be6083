/** What evaluations report about requests that are traced, and what they ask about those that are rehearsed. */
import type { Failure } from "../values/failure.ts";
import type { Need } from "../values/need.ts";
import type { CelValue } from "../values/types.ts";

/** The value of one path in an expression, such as `jwt.sub` or `request.headers["x-a"]`, in one evaluation. */
export interface InputValue {
  readonly text: string;
  /** The fields below the variable: `sub`; `headers`, `x-a`. */
  readonly path: readonly string[];
  /** JSON; null if absent. */
  readonly value: unknown;
}

/** The result of a part of an expression that is neither a path nor constant, such as `jwt.sub == "a"` in a longer condition. */
export interface PartValue {
  /** Offsets into the text of the expression, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  /** JSON and its type, or why there is no value. */
  readonly result: { readonly value: unknown; readonly type: string } | { readonly error: string };
  /** What it was computed from. */
  readonly reads: readonly InputValue[];
  /** It was computed from more than `reads`: from whole maps, a body, a secret. */
  readonly readsMore: boolean;
  /** Of a loop whose parts are observed. */
  readonly turns?: Turns;
}

/** The turns of a loop until its result was certain. */
interface Turns {
  /** The first of them. */
  readonly shown: readonly Turn[];
  readonly count: number;
}

/** One turn of a loop: what its variables stood for, in their order, and the parts that it reached. */
export interface Turn {
  readonly variables: readonly { readonly name: string; readonly value?: PartValue }[];
  readonly parts: readonly PartValue[];
}

/** What an expression read and computed in one evaluation. */
export interface Observation {
  /** Set if the result depends on what is not known. */
  readonly needs?: readonly Need[];
  /** The whole expression; undefined if its result is not shown. */
  readonly whole: PartValue | undefined;
  /** All paths in the expression. Without whole maps of headers and bodies: they would be large, or secret. */
  readonly inputs: readonly InputValue[];
  /** The parts that the evaluation reached, in source order. Parts in loops are in the turns. */
  readonly parts: readonly PartValue[];
}

/** What a rehearsal does not know about its request, and what it assumes. */
export interface Unknowns {
  /**
   * What stands at a path of the variables, such as `request`, `headers`, `x-a`, in place of what the request has there: an assumed value, or a
   * failure with what is needed. undefined: the request is right. `presence`: only whether there is anything matters. `random()` and
   * `uuid()` are paths too.
   */
  at(path: readonly string[], presence: boolean): CelValue | Failure | undefined;
  /** Whether a condition is met that depends on `needs`. */
  decide(text: string, needs: readonly Need[]): boolean;
  /** A value depends on `needs`: makes it from what stands in their place, which `at` returns meanwhile, or else from what the request has. */
  standIn<Value>(needs: readonly Need[], make: () => Value): Value;
}

/** Follows the evaluations for one request, which are slower because of it. */
export interface EvaluationObserver {
  evaluated(text: string, observation: Observation): void;
}
