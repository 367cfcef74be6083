import { TCP_KINDS } from "../../../config/schema/policies.ts";
import { SECTION_TARGETS, type Section, type TargetKind } from "../../crd/policy.ts";
import type { Claim, Claimant } from "./conflicts.ts";
import type { PolicyInput } from "./input.ts";
import { placeOf } from "./targets.ts";

const TCP_ROUTES: readonly TargetKind[] = ["TLSRoute", "TCPRoute"];

/** Whether a section of a policy can be attached to a kind of object. */
export function isAttachable(section: Section, { phase }: Pick<PolicyInput, "phase">, kind: TargetKind): boolean {
  const kinds: readonly TargetKind[] = SECTION_TARGETS[section];
  if (section === "traffic" && phase === "gateway" && kind !== "Gateway" && kind !== "ListenerSet") return false;
  return kinds.includes(kind);
}

/** Connections without HTTP have a use for few kinds. */
export function isUsable(kind: string, target: TargetKind): boolean {
  return !TCP_ROUTES.includes(target) || (TCP_KINDS as readonly string[]).includes(kind);
}

/** What a policy configures at a target (`policyTarget`), also what is invalid. */
export function claimantAt(input: PolicyInput, target: string): Claimant {
  const { kind } = placeOf(target);
  const { key, created, override } = input;
  const claims = input.sections.flatMap((section): Claim[] => {
    if (!isAttachable(section, input, kind)) return [];
    const phase = section === "traffic" ? input.phase : section;
    const names = [...Object.keys(input[section]), ...input.invalid[section]];
    return names
      .filter((name) => section === "frontend" || isUsable(name, kind))
      .map((name) => ({ phase, kind: name }));
  });
  return { key, created, override, claims };
}
