import type { Activation } from "../../cel/index.ts";
import type { ShownVariables } from "../../telemetry/shown-variables.ts";

/** The subject of a record: a request, connection or session. */
export interface Subject {
  /** What filters read of it; computed only if there are any. */
  readonly variables: Activation;
  /** What expressions read whose values are written. */
  readonly shown: ShownVariables;
}
