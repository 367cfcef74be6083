export {
  CelEnvironment,
  type Condition,
  type Expression,
  type ObservedCondition,
  readsBody,
  STANDARD_ENVIRONMENT,
  type WhenFailed,
} from "./compile.ts";
export { compileFunctions, readFunctions } from "./custom/compile-functions.ts";
export type {
  Activation,
  DestinationParts,
  RequestParts,
  ResponseParts,
  SourceParts,
} from "./environment/activation.ts";
export { type CustomFunctions, NO_FUNCTIONS } from "./environment/custom-function.ts";
export type { InputValue, Observation, PartValue } from "./observation.ts";
export { type HttpRequestParts, HttpRequestView } from "./request-view.ts";
export { CelError, type Position } from "./syntax/cel-error.ts";
export { Budget, type StepAccount } from "./values/budget.ts";
export { toBytes, toJson, toText } from "./values/convert.ts";
export { headerText } from "./values/headers.ts";
export { type Held, held } from "./values/held.ts";
export { CelMap } from "./values/map.ts";
export {
  CelDuration,
  CelMapLike,
  CelOpaque,
  CelOptional,
  CelSecret,
  CelTimestamp,
  CelType,
  CelUint,
  type CelValue,
} from "./values/types.ts";
export type { Scope } from "./variables/variables.ts";
