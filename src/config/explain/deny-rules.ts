import type { CelEnvironment, Scope } from "../../cel/index.ts";
import type { AuthorizationRule } from "../../policies/policy-set.ts";
import type { Path, Report } from "../translate/report.ts";

/** Warns about `deny` rules, at `path`, that let pass who leaves out what they negate or compare. The rules are known to compile. */
export function warnAboutDenyRules(
  rules: readonly AuthorizationRule[],
  scope: Scope,
  path: Path,
  report: Report,
  cel: CelEnvironment,
): void {
  for (const [i, { mode, expression }] of rules.entries()) {
    if (mode !== "deny") continue;
    for (const { reads, safe } of cel.absenceTraps(expression, scope))
      report([...path, i, "deny"], {
        message: `denies nothing where ${reads} is absent, so a request without it passes; to handle absence, write ${safe}`,
        warning: true,
      });
  }
}
