/** What other rooms import of `cel`. */
export type { Catalog } from "./catalog.ts";
export {
  CelEnvironment,
  type Condition,
  type Expression,
  readsBody,
  STANDARD_ENVIRONMENT,
  type WhenFailed,
} from "./compile.ts";
export { readFunctions } from "./custom/compile-functions.ts";
export {
  type Activation,
  FINDINGS,
  type Findings,
  overlaid,
  type RecordParts,
  type RequestParts,
  type ResponseParts,
  SOURCE_FIELDS,
  type SourceParts,
} from "./environment/activation.ts";
export { type CustomFunctions, NO_FUNCTIONS } from "./environment/custom-function.ts";
export type { EvaluationObserver, InputValue, Observation, PartValue, Unknowns } from "./environment/observer.ts";
export { CelError, UnknownVariableError } from "./syntax/cel-error.ts";
export { Budget, type StepAccount } from "./values/budget.ts";
export { toBytes, toJson, toText } from "./values/convert.ts";
export { type Failure, unknown } from "./values/failure.ts";
export { headerText } from "./values/headers.ts";
export { held } from "./values/held.ts";
export type { Need, Supply } from "./values/need.ts";
export { CelDuration, CelSecret, CelTimestamp, type CelValue } from "./values/types.ts";
export { isScope, SCOPES, type Scope } from "./variables/scopes.ts";
