import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CelEnvironment, CelError, type CelValue, type Expression, toJson, toText } from "../../cel/index.ts";
import type { RateLimitDescriptorSchema } from "../../gen/envoy/extensions/common/ratelimit/v3/ratelimit_pb.ts";
import type { RateLimitUnit } from "../../gen/envoy/type/v3/ratelimit_unit_pb.ts";
import type { PolicyContext } from "../contract/types.ts";
import type { RateLimitDescriptor } from "./schema.ts";

/** `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor` of one request. */
export type Descriptor = MessageInitShape<typeof RateLimitDescriptorSchema>;

/** `requests_per_unit` is a uint32; hits have the same limit. */
const MAX_UINT32 = 0xffff_ffff;
/** `envoy.type.v3.RateLimitUnit` by the names of the configuration. */
const UNITS: ReadonlyMap<string, RateLimitUnit> = new Map([
  ["second", 1],
  ["minute", 2],
  ["hour", 3],
  ["day", 4],
  ["month", 5],
  ["year", 6],
]);

/** One compiled descriptor of the configuration; makes a message per request. */
export class DescriptorMaker {
  readonly expressions: readonly Expression[];
  readonly #entries: readonly { readonly key: string; readonly value: Expression }[];
  readonly #cost: Expression | undefined;
  readonly #override: Expression | undefined;

  /** Throws CelError for expressions that do not compile. */
  constructor({ entries, cost, limitOverride }: RateLimitDescriptor, cel: CelEnvironment) {
    this.#entries = entries.map(({ key, value }) => ({ key, value: cel.compileExpression(value, "request") }));
    this.#cost = cost === undefined ? undefined : cel.compileExpression(cost, "request");
    this.#override = limitOverride === undefined ? undefined : cel.compileExpression(limitOverride, "request");
    this.expressions = [...this.#entries.map(({ value }) => value), this.#cost, this.#override].filter(
      (each) => each !== undefined,
    );
  }

  /** Throws a CelError if an expression fails, an Error if its value is not a count or a limit. */
  make({ variables }: PolicyContext): Descriptor {
    const entries = this.#entries.map(({ key, value }) => ({ key, value: textOf(value.evaluate(variables)) }));
    return {
      entries,
      ...(this.#cost !== undefined && { hitsAddend: BigInt(countOf(this.#cost.evaluate(variables))) }),
      ...(this.#override !== undefined && { limit: limitOf(this.#override.evaluate(variables)) }),
    };
  }
}

/** Text of an entry; null counts as a missing value (`absent`), which omits the descriptor. */
function textOf(value: CelValue): string {
  const text = toText(value);
  if (text === undefined) throw new CelError("null is not a value of an entry", "", undefined, undefined, true);
  return text;
}

/** Throws an Error for anything but an integer from 0 to 2^32 - 1. */
function countOf(value: unknown): number {
  const count = Number(value);
  if (!Number.isInteger(count) || count < 0 || count > MAX_UINT32) throw new Error("not a count of hits");
  return count;
}

/** `limit_override`: `{unit: "minute", requestsPerUnit: 10}`. Throws an Error for anything else. */
function limitOf(value: CelValue): NonNullable<Descriptor["limit"]> {
  const { unit, requestsPerUnit } = toJson(value) as { unit?: unknown; requestsPerUnit?: unknown };
  const known = UNITS.get(String(unit).toLowerCase());
  if (known === undefined) throw new Error("unit is not one of second, minute, hour, day, month, year");
  return { unit: known, requestsPerUnit: countOf(requestsPerUnit) };
}
