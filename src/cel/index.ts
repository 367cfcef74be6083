export { CelError, type Position } from "./cel-error.ts";
export { compileCondition, compileExpression, type Expression } from "./compile.ts";
export { type HttpRequestParts, HttpRequestView, type RequestVariable, type RequestView } from "./request-view.ts";
export type { Scope } from "./variables.ts";
