export type { Activation, DestinationParts, RequestParts, ResponseParts, SourceParts } from "./activation.ts";
export { CelError, type Position } from "./cel-error.ts";
export {
  CelEnvironment,
  type Condition,
  type Expression,
  readsBody,
  STANDARD_ENVIRONMENT,
  type WhenFailed,
} from "./compile.ts";
export { compileFunctions, readFunctions } from "./custom/compile-functions.ts";
export { type CustomFunctions, NO_FUNCTIONS } from "./custom/custom-function.ts";
export { Budget, type StepAccount } from "./evaluate/budget.ts";
export { Inputs, type InputValue } from "./inputs.ts";
export { type HttpRequestParts, HttpRequestView } from "./request-view.ts";
export { toBytes, toJson, toText } from "./values/convert.ts";
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
export { headerText } from "./variables/headers.ts";
export type { Scope } from "./variables/variables.ts";
