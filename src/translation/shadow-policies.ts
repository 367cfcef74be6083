/**
 * Translates `shadow: true`: a shadow policy gets its own key in the set, next to the key of the enforced policy of the same kind. A list
 * whose items can be shadow policies, such as `localRateLimit`, becomes two lists.
 */
import { isShadowable, type ShadowableKind, shadowKey } from "../policies/contract/shadow.ts";
import { kindsOf } from "../policies/merge.ts";
import type { PolicyInputs, PolicySet, SetKey } from "../policies/policy-set.ts";

/** Whether all of a policy is in shadow, so that nothing is enforced without it. `written` may be invalid otherwise. */
export function isAllShadow(kind: string, written: unknown): boolean {
  if (!isShadowable(kind)) return false;
  return Array.isArray(written) ? written.length > 0 && written.every(isMarked) : isMarked(written);
}

/** The keys that the policies get in a set. */
export function keysOf(input: PolicyInputs): SetKey[] {
  return kindsOf(input).flatMap((kind) => {
    const written = input[kind];
    if (written === undefined) return [];
    if (!isShadowable(kind) || !(Array.isArray(written) ? written.some(isMarked) : isMarked(written))) return [kind];
    return isAllShadow(kind, written) ? [shadowKey(kind)] : [kind, shadowKey(kind)];
  });
}

/** What users wrote without the field `shadow`: the policies as if all were enforced, with the same positions in lists. */
export function asEnforced(input: PolicyInputs): PolicyInputs {
  const enforced: Record<string, unknown> = { ...input };
  for (const kind of kindsOf(input)) if (isShadowable(kind)) enforced[kind] = unmarked(input[kind]);
  return enforced;
}

/** Moves the policies that `written` marks as shadow to keys of their own. `set`: what `asEnforced` of it was resolved to. */
export function withShadows(set: PolicySet, written: PolicyInputs): PolicySet {
  const separate: Partial<Record<SetKey, unknown>> = { ...set };
  for (const kind of kindsOf(written))
    if (isShadowable(kind) && set[kind] !== undefined) separateKind(kind, set[kind], written[kind], separate);
  return separate as PolicySet;
}

function separateKind(
  kind: ShadowableKind,
  config: unknown,
  written: unknown,
  into: Partial<Record<SetKey, unknown>>,
): void {
  const key = shadowKey(kind);
  if (Array.isArray(config) && Array.isArray(written)) {
    const shadows = config.filter((_item, i) => isMarked(written[i]));
    if (shadows.length === 0) return;
    into[key] = shadows;
    if (shadows.length === config.length) delete into[kind];
    else into[kind] = config.filter((_item, i) => !isMarked(written[i]));
  } else if (isMarked(written)) {
    into[key] = config;
    delete into[kind];
  }
}

function isMarked(written: unknown): boolean {
  return typeof written === "object" && written !== null && "shadow" in written && written.shadow === true;
}

function unmarked(written: unknown): unknown {
  if (Array.isArray(written)) return written.map(unmarked);
  if (typeof written !== "object" || written === null || !("shadow" in written)) return written;
  const { shadow: _mark, ...others } = written;
  return others;
}
