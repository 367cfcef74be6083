/**
 * What TracegatePolicies configure at a target, part by part, and which of several policies for one target applies
 * (docs/crds.md#which-policy-applies): the oldest, then the first by namespace and name; those with the inheritance `Override`
 * before those without.
 */
import { refOf } from "../../../kube/keys.ts";
import type { SetKey } from "../../../policies/policy-set.ts";
import { KINDS } from "../../../policies/registry.ts";
import { TCP_KINDS } from "../../../translation/schema/policies.ts";
import { keysOf } from "../../../translation/shadow-policies.ts";
import { SECTION_TARGETS, type Section, type TargetKind } from "../../crd/policy.ts";
import type { Read } from "../../graph/graph.ts";
import { type Aged, byPrecedence } from "../model/precedence.ts";
import { type PolicyInput, policyInput } from "./input.ts";
import { policiesOf } from "./targets.ts";

/** A kind in a phase, or a field of `frontend`. */
export interface Part {
  /** `frontend`, `gateway`, `route` or `backend`. */
  readonly phase: string;
  readonly kind: string;
}

/** What a policy configures at one target. */
interface PolicyParts extends Aged {
  readonly override: boolean;
  readonly parts: readonly Part[];
}

/** A part of a policy that has no effect, because another policy configures the same at the same target. */
interface LostPart extends Part {
  /** Key of the policy without effect. */
  readonly policy: string;
  /** Key of the policy that applies. */
  readonly by: string;
}

/** The policies that are attached to one target. */
interface AttachedInputs {
  /** In order of precedence. */
  readonly inputs: readonly PolicyInput[];
  /** Of each of them. */
  readonly parts: readonly PolicyParts[];
  readonly lost: readonly LostPart[];
}

/** What is attached to a target (`refKey`): to that object or section, not to what is around it. */
export function inputsAt(read: Read, target: string): AttachedInputs {
  const inputs = read
    .query(policiesOf, target)
    .map((key) => read.query(policyInput, key))
    .filter((input) => input !== undefined)
    .sort((a, b) => Number(b.override) - Number(a.override) || byPrecedence(a, b));
  const parts = inputs.map((input) => partsAt(input, target));
  return { inputs, parts, lost: lostParts(parts) };
}

/** The fields of `set`, which a policy configures in a phase, without those that it has lost. */
export function withoutLost<Set extends object>(
  set: Set,
  { lost }: AttachedInputs,
  policy: string,
  phase: Part["phase"],
): Partial<Set> {
  const isLost = (kind: string): boolean =>
    lost.some((each) => each.policy === policy && each.phase === phase && each.kind === kind);
  return Object.fromEntries(Object.entries(set).filter(([kind]) => !isLost(kind))) as Partial<Set>;
}

/** What a policy configures at a target (`refKey`), also what is invalid. */
export function partsAt(input: PolicyInput, target: string): PolicyParts {
  const { kind } = refOf<TargetKind>(target);
  const { key, created, override } = input;
  const parts = input.sections.flatMap((section): Part[] => {
    if (!isAttachable(section, input, kind)) return [];
    const phase = section === "traffic" ? input.phase : section;
    const written = section === "frontend" ? Object.keys(input.frontend) : keysOf(input[section]);
    const names = [...written, ...input.invalid[section]];
    return names
      .filter((name) => section === "frontend" || isUsable(name, kind))
      .map((name) => ({ phase, kind: name }));
  });
  return { key, created, override, parts };
}

/** `policies` in order of precedence. Kinds that combine, such as `authorization`, lose to none. */
function lostParts(policies: readonly PolicyParts[]): readonly LostPart[] {
  const winners = new Map<string, string>();
  const lost: LostPart[] = [];
  for (const { key, parts } of policies)
    for (const { phase, kind } of parts) {
      if (isCombined(phase, kind)) continue;
      const slot = `${phase} ${kind}`;
      const winner = winners.get(slot);
      if (winner === undefined) winners.set(slot, key);
      else lost.push({ phase, kind, policy: key, by: winner });
    }
  return lost;
}

/** Several policies of the kind apply together. */
export function isCombined(phase: string, kind: string): boolean {
  return phase !== "frontend" && KINDS[kind as SetKey].repeatable === true;
}

/** Whether a section of a policy can be attached to a kind of object. */
export function isAttachable(section: Section, { phase }: Pick<PolicyInput, "phase">, kind: TargetKind): boolean {
  const kinds: readonly TargetKind[] = SECTION_TARGETS[section];
  if (section === "traffic" && phase === "gateway" && kind !== "Gateway" && kind !== "ListenerSet") return false;
  return kinds.includes(kind);
}

const TCP_ROUTES: readonly TargetKind[] = ["TLSRoute", "TCPRoute"];

/** Connections without HTTP have a use for few kinds. */
export function isUsable(kind: string, target: TargetKind): boolean {
  return !TCP_ROUTES.includes(target) || (TCP_KINDS as readonly string[]).includes(kind);
}
