import type { Path } from "../../base/paths.ts";
import type { PolicyInputs, PolicyKind } from "../../policies/policy-set.ts";
import type { Report } from "../../translation/problems/problem.ts";
import { unusableText } from "../../translation/problems/unsupported-fields.ts";
import { CONNECTION_KINDS } from "../../translation/schema/policies.ts";
import { isAllShadow } from "../../translation/shadow-policies.ts";

export const WITHOUT_HTTP = "listeners without HTTP have";

/** Reports each policy at `path` that would silently never apply, because only the `usable` kinds apply to connections without HTTP. */
export function reportUnusable(
  what: string,
  usable: readonly PolicyKind[],
  policies: PolicyInputs,
  path: Path,
  report: Report,
): void {
  for (const [kind, value] of Object.entries(policies)) {
    if (value === undefined) continue;
    if (!usable.includes(kind as PolicyKind)) report(path, { message: unusableText(what, usable, kind) }, kind);
    else if (isAllShadow(kind, value))
      report(
        [...path, kind],
        { message: "only requests can be tried in shadow, and this listener has no HTTP; remove it" },
        "shadow",
      );
  }
}

/** The same for the policies of a listener without HTTP itself. */
export function reportUnusableAtListener(policies: PolicyInputs, path: Path, report: Report): void {
  reportUnusable(WITHOUT_HTTP, CONNECTION_KINDS, policies, path, report);
}
