import { type CelEnvironment, type Expression, toText } from "../cel/index.ts";
import { readsOf } from "./access-log-edits.ts";
import { REQUEST_LABELS } from "./metric-table.ts";
import type { ShownVariables } from "./shown-variables.ts";

/** Value of a label that does not apply, or whose expression fails or yields nothing. */
export const UNKNOWN = "unknown";
/** Characters of a value that are kept, so that clients cannot fill the memory with their headers. */
const MAX_VALUE = 128;

/** `config.metrics.fields.add`: labels of the request metrics that expressions compute (docs/metrics.md#requests). */
export class CustomLabels {
  readonly #expressions: readonly Expression[];
  /** Variables that the expressions read; see `Expression.reads`. */
  readonly reads: ReadonlySet<string>;

  /** Throws CelError if an expression does not compile. */
  constructor(fields: Readonly<Record<string, string>>, cel: CelEnvironment) {
    this.#expressions = Object.values(fields).map((text) => compileLabel(text, cel));
    this.reads = readsOf(this.#expressions);
  }

  /** The values at the end of a request, in the order of the configuration. */
  read(variables: ShownVariables): readonly string[] {
    return this.#expressions.map((expression) => labelValue(expression, variables));
  }
}

/** Throws CelError if the expression does not compile. */
export function compileLabel(text: string, cel: CelEnvironment): Expression {
  return cel.compileExpression(text, "response");
}

/** Why a name is not a valid label name (Prometheus data model); undefined if it is valid. */
export function wrongLabelName(name: string): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return "not a label name: write letters, digits and _";
  if (name.startsWith("__")) return "names that begin with __ belong to Prometheus";
  if (name === "le" || (REQUEST_LABELS as readonly string[]).includes(name))
    return "the metrics have this label already";
  return undefined;
}

function labelValue(expression: Expression, variables: ShownVariables): string {
  try {
    const value = toText(expression.evaluate(variables));
    // U+0000 separates the labels in the key of a series.
    const text = value === undefined ? "" : String(variables.redact(value)).replaceAll("\u0000", "");
    return text === "" ? UNKNOWN : text.slice(0, MAX_VALUE);
  } catch {
    return UNKNOWN;
  }
}
