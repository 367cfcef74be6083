import { CelError, type CelValue, compileExpression, type Expression, toJson, toText } from "../../cel/index.ts";
import { type Descriptor, UNITS } from "../envoy/rate-limit.ts";
import type { RateLimitDescriptor } from "../policy-set.ts";
import type { PolicyContext } from "../types.ts";

const MAX_UINT32 = 0xffff_ffff;

/** A descriptor whose expressions are compiled. */
export class DescriptorMaker {
  readonly expressions: readonly Expression[];
  readonly #entries: readonly { readonly key: string; readonly value: Expression }[];
  readonly #cost: Expression | undefined;
  readonly #override: Expression | undefined;

  /** Throws CelError for expressions that cannot be used. */
  constructor({ entries, cost, limitOverride }: RateLimitDescriptor) {
    this.#entries = entries.map(({ key, value }) => ({ key, value: compileExpression(value, "request") }));
    this.#cost = cost === undefined ? undefined : compileExpression(cost, "request");
    this.#override = limitOverride === undefined ? undefined : compileExpression(limitOverride, "request");
    this.expressions = [...this.#entries.map(({ value }) => value), this.#cost, this.#override].filter(
      (each) => each !== undefined,
    );
  }

  /** Throws a CelError when an expression fails, and an Error when it gives what cannot be counted by. */
  make({ variables }: PolicyContext): Descriptor {
    const entries = this.#entries.map(({ key, value }) => ({ key, value: textOf(value.evaluate(variables)) }));
    return {
      entries,
      ...(this.#cost !== undefined && { hits_addend: { value: countOf(this.#cost.evaluate(variables)) } }),
      ...(this.#override !== undefined && { limit: limitOf(this.#override.evaluate(variables)) }),
    };
  }
}

function textOf(value: CelValue): string {
  const text = toText(value);
  if (text === undefined) throw new CelError("null is no value of an entry", "", undefined, undefined, true);
  return text;
}

function countOf(value: unknown): number {
  const count = Number(value);
  if (!Number.isInteger(count) || count < 0 || count > MAX_UINT32) throw new Error("not a count of hits");
  return count;
}

function limitOf(value: CelValue): NonNullable<Descriptor["limit"]> {
  const { unit, requestsPerUnit } = toJson(value) as { unit?: unknown; requestsPerUnit?: unknown };
  const number = UNITS[String(unit).toLowerCase() as keyof typeof UNITS] as number | undefined;
  if (number === undefined) throw new Error("unit is not one of second, minute, hour, day, month, year");
  return { unit: number, requests_per_unit: countOf(requestsPerUnit) };
}
