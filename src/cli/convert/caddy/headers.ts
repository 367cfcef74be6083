/** Header fields: `header`, `request_header`, `header_up`, `header_down`. */
import type { Json } from "../converted.ts";
import type { Findings } from "../findings.ts";
import type { Directive } from "./parse.ts";
import { celOf, hasPlaceholders } from "./placeholders.ts";

interface Fields {
  readonly set: Record<string, string>;
  readonly add: Record<string, string>;
  readonly remove: string[];
  /** Fields with CEL. */
  readonly computed: Record<string, string>;
}

/** Fields that the gateway sets itself, with the values that say the same. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  "x-forwarded-for": ["{remote_host}", "{http.request.remote.host}"],
  "x-forwarded-proto": ["{scheme}", "{http.request.scheme}"],
  "x-forwarded-host": ["{host}", "{hostport}", "{http.request.host}", "{http.request.hostport}"],
};

/** The policies of lines such as `Field value`, `+Field value` and `-Field`. `side`: whose fields they are. */
export function headerPolicies(
  lines: readonly (readonly [at: Directive, field: string, ...values: string[]])[],
  side: "request" | "response",
  findings: Findings,
): Json {
  const fields: Fields = { set: {}, add: {}, remove: [], computed: {} };
  for (const line of lines) read(line, fields, side, findings);
  const { set, add, remove, computed } = fields;
  const some = (part: object): boolean => Object.keys(part).length > 0;
  const modifier = {
    ...(some(set) && { set }),
    ...(some(add) && { add }),
    ...(remove.length > 0 && { remove }),
  };
  return {
    ...(some(modifier) && { [`${side}HeaderModifier`]: modifier }),
    ...(some(computed) && { transformations: { [side]: { set: computed } } }),
  };
}

function read(
  [at, written, value, replacement]: readonly [at: Directive, field: string, ...values: string[]],
  { set, add, remove, computed }: Fields,
  side: "request" | "response",
  findings: Findings,
): void {
  const [, sign = "", name = ""] = /^([+?>-]?)(.*)$/.exec(written) ?? [];
  const field = name.replace(/:$/, "");
  const lose = (message: string): void =>
    findings.find("error", at, message, `set ${field} by CEL in transformations.${side}`);
  if (sign === "-" && /^[\w-]+$/.test(field)) remove.push(field);
  else if (sign === "-" || sign === "?" || replacement !== undefined || value === undefined)
    lose(`${at.name} ${[written, value, replacement].filter((each) => each !== undefined).join(" ")} is left out`);
  else if (side === "request" && OWN[field.toLowerCase()]?.includes(value) === true) return;
  else if (!hasPlaceholders(value)) (sign === "+" ? add : set)[field] = value;
  else {
    const cel = side === "request" && sign !== "+" ? celOf(value) : undefined;
    if (cel === undefined) {
      lose(`${field} with the value ${value} is left out${side === "request" ? ", and the client's is removed" : ""}`);
      // The backend may trust it, so clients must not set it.
      if (side === "request") remove.push(field);
    } else computed[field] = cel;
  }
}

/** Whether a line removes all fields of a pattern, which a policy cannot. Clients may not be meant to set them. */
export function removesPattern(field: string): boolean {
  return /^-.*\*/.test(field);
}

/** The lines of a directive with one field, or a block of them. */
export function linesOf(
  at: Directive,
  args: readonly string[],
  block: readonly Directive[],
): readonly (readonly [Directive, string, ...string[]])[] {
  const [field, ...values] = args;
  const own = field === undefined ? [] : [[at, field, ...values] as const];
  return [
    ...own,
    ...block
      .filter(({ name }) => name !== "defer" && name !== "match")
      .map((each) => [each, each.name, ...each.args] as const),
  ];
}
