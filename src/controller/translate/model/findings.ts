/** What is wrong with a route, and the conditions that say so. */
import { isFalse, isTrue, joined } from "./conditions.ts";
import type { ConditionDraft } from "./model.ts";

/** A reference that cannot be followed, with a reason of the condition ResolvedRefs. */
interface BrokenReference {
  readonly reason:
    | "RefNotPermitted"
    | "InvalidKind"
    | "BackendNotFound"
    | "FilterNotFound"
    | "UnsupportedProtocol"
    | "UnsupportedValue"
    | "InvalidBackendTLSPolicy";
  /** What, where, and how to mend it. */
  readonly message: string;
}

/** A rule with a value that cannot be served. */
interface InvalidRule {
  readonly index: number;
  readonly reason: "UnsupportedValue" | "IncompatibleFilters";
  /** Begins with the field, such as `matches[0].path.value`. */
  readonly message: string;
}

/** Collects what is wrong while a route is translated. */
export class Findings {
  readonly broken: BrokenReference[] = [];
  readonly invalid: InvalidRule[] = [];

  breaks(reason: BrokenReference["reason"], message: string): void {
    this.broken.push({ reason, message });
  }

  invalidates(index: number, message: string, reason: InvalidRule["reason"] = "UnsupportedValue"): void {
    this.invalid.push({ index, reason, message });
  }
}

const REJECTED = "requests that these rules match get 500 until they are corrected";

/**
 * The conditions of a route at one parent (Gateway API, RouteParentStatus). `accepted` is what the parent says of it. A route with
 * invalid rules is partially invalid, or not accepted if all of them are; those with valid matches respond with 500 in both cases.
 */
export function routeConditions(
  accepted: ConditionDraft,
  { broken, invalid }: Findings,
  rules: readonly { readonly index: number; readonly matches: readonly unknown[] }[],
): readonly ConditionDraft[] {
  const [worst] = broken;
  const resolved =
    worst === undefined
      ? isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved")
      : isFalse("ResolvedRefs", worst.reason, joined(broken.map(({ message }) => message)));
  const [first] = invalid;
  if (first === undefined || accepted.status !== "True") return [accepted, resolved];
  const dropped = rules.filter((rule) => invalid.some(({ index }) => index === rule.index));
  const answers = dropped.some(({ matches }) => matches.length > 0) ? `; ${REJECTED}` : "";
  const why = `${joined(invalid.map(({ index, message }) => `rules[${index}].${message}`))}${answers}`;
  if (dropped.length === rules.length) return [isFalse("Accepted", first.reason, why), resolved];
  return [accepted, resolved, isTrue("PartiallyInvalid", first.reason, `Dropped Rule ${why}`)];
}
