import { formatTimestamp } from "../base/dates.ts";
import { type LogFormat, quote, quoteIfNeeded, safeJson } from "../base/log.ts";
import { type Activation, type CelEnvironment, type Condition, type Expression, toJson } from "../cel/index.ts";
import { durationText, shadowText } from "./access-line.ts";
import { type AccessRecord, recordFields } from "./access-record.ts";
import type { LogFields } from "./settings.ts";
import type { ShownVariables } from "./shown-variables.ts";

/**
 * Chooses the requests to log, or to export as records, and edits their fields (`frontendPolicies.accessLog` and similar,
 * docs/configuration.md#accesslog).
 */
export class AccessLogEdits {
  readonly #filter: Condition | undefined;
  readonly #add: readonly (readonly [string, Expression])[];
  readonly #remove: readonly string[];
  /** Variables that the expressions read; see `Expression.reads`. */
  readonly reads: ReadonlySet<string>;

  /** Throws CelError if an expression does not compile. */
  constructor({ filter, add = {}, remove = [] }: LogFields, cel: CelEnvironment) {
    this.#filter = filter === undefined ? undefined : cel.compileCondition(filter, "response");
    this.#add = Object.entries(add).map(([name, text]) => [name, cel.compileExpression(text, "response")] as const);
    this.#remove = remove;
    const expressions = this.#add.map(([, expression]) => expression);
    this.reads = readsOf(this.#filter === undefined ? expressions : [this.#filter, ...expressions]);
  }

  /** Whether to log the request. If the filter fails, the request is logged: a client must not be able to evade the log. */
  wants(variables: Activation): boolean {
    return this.#filter === undefined || this.#filter.matches(variables, keep);
  }

  /** Whether lines differ from those of `AccessLog`. */
  get changesFields(): boolean {
    return this.#add.length + this.#remove.length > 0;
  }

  /** The line of a record with its fields changed, and with its line break. */
  format(record: AccessRecord, format: LogFormat, variables: ShownVariables): string {
    const fields: Record<string, unknown> = { level: "info", time: formatTimestamp(record.time), scope: "request" };
    for (const [name, value] of Object.entries(recordFields(record))) if (value !== undefined) fields[name] = value;
    if (format === "text") {
      fields.duration = durationText(record.durationMs);
      if (record.shadow !== undefined) fields.shadow = shadowText(record.shadow);
    }
    this.edit(fields, variables);
    return `${format === "json" ? safeJson(fields) : textOf(fields)}\n`;
  }

  /** Removes and adds fields, in place. */
  edit(fields: Record<string, unknown>, variables: ShownVariables): Record<string, unknown> {
    for (const name of this.#remove) delete fields[name];
    for (const [name, expression] of this.#add) {
      const value = readField(expression, variables);
      if (expression.flattens && typeof value === "object")
        for (const [key, item] of Object.entries(value)) fields[`${name}.${key}`] = item;
      else if (value !== undefined) fields[name] = value;
    }
    return fields;
  }
}

const keep = (): boolean => true;

/** Variables that any of the expressions reads. */
export function readsOf(expressions: readonly Pick<Expression, "reads">[]): ReadonlySet<string> {
  return new Set(expressions.flatMap(({ reads }) => [...reads]));
}

function readField(expression: Expression, variables: ShownVariables): NonNullable<unknown> | undefined {
  try {
    return variables.redact(toJson(expression.evaluate(variables))) ?? undefined;
  } catch {
    return undefined;
  }
}

function textOf({ time, level, scope, ...fields }: Record<string, unknown>): string {
  const pairs = Object.entries(fields).map(([name, value]) => {
    if (name === "error") return `error=${quote(String(value))}`;
    return `${name}=${quoteIfNeeded(typeof value === "object" ? JSON.stringify(value) : String(value))}`;
  });
  return [`${time}\t${level}\t${scope}`, ...pairs].join(" ");
}
