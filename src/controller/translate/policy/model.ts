/** A TracegatePolicy as it runs: with texts, targets of calls, and what takes the place of what is invalid. */
import { nameOfKey } from "../../../base/object-key.ts";
import type { ObjectName } from "../../../base/origin.ts";
import type { Path } from "../../../base/paths.ts";
import type { FrontendOrigins } from "../../../ir/ir.ts";
import { below, levelOf, NO_PHASES, type PhaseLevels, type PolicyLevel } from "../../../ir/origins.ts";
import { kindsOf } from "../../../policies/merge.ts";
import type { PolicyInputs, PolicyKind, PolicySet } from "../../../policies/policy-set.ts";
import type { Phase } from "../../../trace/events.ts";
import { adviseOnFrontend } from "../../../translation/advice.ts";
import type { CallContext } from "../../../translation/called-targets.ts";
import { originsOfFrontend, translateCalling } from "../../../translation/frontend.ts";
import { translatePolicies } from "../../../translation/policies.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { isAllShadow } from "../../../translation/shadow-policies.ts";
import type { FrontendField } from "../../crd/policy.ts";
import { defineQuery } from "../../graph/graph.ts";
import type { LintFinding } from "../model/conditions.ts";
import { callContext } from "./calls.ts";
import { denies, failClosed, failClosedFrontend } from "./fail-closed.ts";
import { policyInput } from "./input.ts";
import { Problems } from "./problems.ts";

export interface PolicyModel {
  readonly levels: PhaseLevels;
  readonly frontend: FrontendInput;
  readonly frontendOrigins: FrontendOrigins;
  /** Everything that is wrong with it: `spec.traffic.jwtAuth.jwks: …`. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly findings: readonly LintFinding[];
  /** Kinds that do not apply as written. */
  readonly invalid: { readonly traffic: readonly PolicyKind[]; readonly backend: readonly PolicyKind[] };
  /** At least one part of it applies as written. */
  readonly usable: boolean;
  /** Something that restricts access is invalid, so access is denied until it is corrected. */
  readonly denying: boolean;
  /** Documents that it needs. */
  readonly urls: readonly string[];
}

/** Key: `<namespace>/<name>`; undefined: there is no such policy. */
export const policyModel = defineQuery<PolicyModel | undefined>("policyModel", (read, key) => {
  const input = read.query(policyInput, key);
  if (input === undefined) return undefined;
  const problems = new Problems();
  const urls: string[] = [];
  const context = callContext(read, input.namespace, input.callees, problems.report, urls);
  const object = { kind: "TracegatePolicy", ...nameOfKey(key) };
  const { traffic: t, backend: b } = input.invalid;
  const traffic = translateKinds(input.traffic, t, input.phase, ["spec", "traffic"], context, problems, object);
  const backend = translateKinds(input.backend, b, "backend", ["spec", "backend"], context, problems, object);
  const section = { object, path: ["spec", "frontend"] };
  const frontend = validFrontend(input.frontend, context, problems);
  reportContradictions(input.frontend, problems);
  adviseOnFrontend(frontend.valid, problems.report);
  const invalidFields = [...input.invalid.frontend, ...frontend.invalid];
  return {
    levels: { ...NO_PHASES, [input.phase]: traffic.level, backend: backend.level },
    frontend: failClosedFrontend(frontend.valid, invalidFields),
    frontendOrigins: {
      ...Object.fromEntries(invalidFields.map((field) => [field, [below(section, [field])]])),
      ...originsOfFrontend(frontend.valid, section),
    },
    problems: [...new Set([...input.problems, ...problems.errors])],
    warnings: problems.warnings,
    findings: problems.findings,
    invalid: { traffic: traffic.invalid, backend: backend.invalid },
    usable: traffic.usable || backend.usable || Object.keys(frontend.valid).length > 0,
    denying: denies([...traffic.invalid, ...backend.invalid, ...invalidFields]),
    urls,
  };
});

/** Translates the policies at `path` of an object kind by kind. Invalid policies are replaced; policies that only fail at run time, such as for a missing service, stay. */
export function translateKinds(
  inputs: PolicyInputs,
  unparsed: readonly PolicyKind[],
  phase: Phase,
  path: Path,
  context: CallContext,
  problems: Problems,
  object: ObjectName,
): { readonly level: PolicyLevel; readonly invalid: readonly PolicyKind[]; readonly usable: boolean } {
  const invalid = [...unparsed];
  const valid: PolicySet = {};
  for (const kind of kindsOf(inputs)) {
    const before = problems.invalidating;
    const set = translatePolicies({ [kind]: inputs[kind] }, phase, path, context, inputs);
    // Proxies would reject the whole configuration of the Gateway, or run the policy without something that it needs, such as its CAs.
    if (problems.invalidating === before) Object.assign(valid, set);
    else if (!isAllShadow(kind, inputs[kind])) invalid.push(kind);
  }
  const level = levelOf(valid, (field) => ({ in: object, at: [...path, field] }));
  return { level: failClosed(level, invalid, path, object), invalid, usable: Object.keys(valid).length > 0 };
}

/** What each field allows by itself and both together do not; listeners ignore one of them (`withFrontendTls`). */
function reportContradictions({ tls: { minVersion, maxVersion } = {} }: FrontendInput, { report }: Problems): void {
  if (minVersion !== "TLS_V1_3" || maxVersion !== "TLS_V1_2") return;
  const message = `${maxVersion} is below minVersion ${minVersion} and is ignored; remove one of them`;
  report(["spec", "frontend", "tls", "maxVersion"], { message });
}

/** The fields of `frontend` that can be translated. Those with problems are reported. */
function validFrontend(
  input: FrontendInput,
  context: CallContext,
  problems: Problems,
): { readonly valid: FrontendInput; readonly invalid: readonly FrontendField[] } {
  const valid: FrontendInput = {};
  const invalid: FrontendField[] = [];
  for (const field of Object.keys(input) as FrontendField[]) {
    const before = problems.invalidating;
    const single: FrontendInput = { [field]: input[field] };
    translateCalling(single, context);
    if (problems.invalidating > before) invalid.push(field);
    else Object.assign(valid, single);
  }
  return { valid, invalid };
}
