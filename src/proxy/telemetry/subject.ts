/** What telemetry reads of a request, connection or session. */
import type { Activation } from "../../cel/index.ts";
import type { ShownVariables } from "../../telemetry/shown-variables.ts";

/** The subject of a record: a request, connection or session. */
export interface Subject {
  /** The variables that filters read; computed only if there are filters. */
  readonly variables: Activation;
  /** The variables of expressions whose values are written. */
  readonly shown: ShownVariables;
}
