import type { Activation } from "../activation.ts";
import type { Read, Variable } from "../check/environment.ts";
import { record, type Type } from "../check/types.ts";
import { CelMapLike, type CelValue } from "../values/types.ts";

/** A field's type, and how to read it; undefined when it is absent. */
export type Field = readonly [Type, Read];

/** A variable with fields of its own, read one by one. */
export function recordVariable(name: keyof Activation, fields: Readonly<Record<string, Field>>): Variable {
  const reads = new Map(Object.entries(fields).map(([field, [, read]]) => [field, read]));
  const types = Object.fromEntries(Object.entries(fields).map(([field, [type]]) => [field, type]));
  return {
    type: record(name, types),
    fields: reads,
    read: (activation) => (activation[name] === undefined ? undefined : new RecordView(activation, reads)),
  };
}

/** A whole variable as a map of the fields that it has now. */
class RecordView extends CelMapLike {
  readonly #activation: Activation;
  readonly #fields: ReadonlyMap<string, Read>;

  constructor(activation: Activation, fields: ReadonlyMap<string, Read>) {
    super();
    this.#activation = activation;
    this.#fields = fields;
  }

  get(key: CelValue): CelValue | undefined {
    return typeof key === "string" ? this.#fields.get(key)?.(this.#activation) : undefined;
  }

  keys(): readonly string[] {
    return [...this.#fields.keys()].filter((name) => this.get(name) !== undefined);
  }

  get size(): number {
    return this.keys().length;
  }
}
