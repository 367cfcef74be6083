/** What is wrong with a route, and the conditions that say so. */
import { isFalse, isTrue } from "./conditions.ts";
import type { ConditionDraft } from "./model.ts";

/** A reference that cannot be followed, with a reason of the condition ResolvedRefs. */
export interface BrokenReference {
  readonly reason:
    | "RefNotPermitted"
    | "InvalidKind"
    | "BackendNotFound"
    | "UnsupportedProtocol"
    | "UnsupportedValue"
    | "InvalidBackendTLSPolicy";
  /** What, where, and how to mend it. */
  readonly message: string;
}

/** A rule with a value that cannot be served. */
export interface InvalidRule {
  readonly index: number;
  readonly reason: "UnsupportedValue" | "IncompatibleFilters";
  /** A match is wrong: what the rule would match is not known. */
  readonly unmatchable: boolean;
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
    this.invalid.push({ index, reason, message, unmatchable: false });
  }

  unmatchable(index: number, message: string): void {
    this.invalid.push({ index, reason: "UnsupportedValue", message, unmatchable: true });
  }
}

const REJECTED = "requests that such a rule matches by valid matches are answered with 500";

/** Longest message of a condition; the API server allows 32768 characters. */
const MAX_MESSAGE = 2000;

/**
 * The conditions of a route at one parent (Gateway API, RouteParentStatus). `accepted` is what the parent says of it. A route with
 * invalid rules is partially invalid, or not accepted if all of them are.
 */
export function routeConditions(
  accepted: ConditionDraft,
  { broken, invalid }: Findings,
  rules: number,
): readonly ConditionDraft[] {
  const [worst] = broken;
  const resolved =
    worst === undefined
      ? isTrue("ResolvedRefs", "ResolvedRefs", "All references are resolved")
      : isFalse("ResolvedRefs", worst.reason, joined(broken.map(({ message }) => message)));
  const [first] = invalid;
  if (first === undefined || accepted.status !== "True") return [accepted, resolved];
  const dropped = new Set(invalid.map(({ index }) => index)).size;
  const why = joined(invalid.map(({ index, message }) => `rules[${index}].${message}`));
  if (dropped === rules) return [isFalse("Accepted", first.reason, why), resolved];
  const answers = invalid.some(({ unmatchable }) => !unmatchable) ? `; ${REJECTED}` : "";
  return [accepted, resolved, isTrue("PartiallyInvalid", first.reason, `Dropped Rule ${why}${answers}`)];
}

/** Messages as one, each once and not too long. */
export function joined(messages: readonly string[]): string {
  const text = [...new Set(messages)].join("; ");
  return text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE - 1)}…`;
}
