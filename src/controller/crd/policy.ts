/**
 * TracegatePolicy (tracegate.dev/v1alpha1, docs/crds.md#tracegatepolicy): policies that name their targets, or that routes name as
 * filters. Their fields are those of the configuration file, apart from what a cluster has in place of files and of services by name
 * (`references.ts`).
 */
import { z } from "zod";
import { GATEWAY_GROUP, INGRESS_GROUP, MULTICLUSTER_GROUP, TRACEGATE_GROUP } from "../../kube/objects.ts";
import { kindsOf } from "../../policies/merge.ts";
import type { PolicyKind } from "../../policies/policy-set.ts";
import { KINDS } from "../../policies/registry.ts";
import { POLICY_SCHEMAS } from "../../policies/schemas.ts";
import { frontendPolicies } from "../../translation/schema/frontend.ts";

/** The kinds that policies attach to, with their groups. */
export const TARGET_KINDS = {
  Gateway: GATEWAY_GROUP,
  ListenerSet: GATEWAY_GROUP,
  HTTPRoute: GATEWAY_GROUP,
  GRPCRoute: GATEWAY_GROUP,
  TLSRoute: GATEWAY_GROUP,
  TCPRoute: GATEWAY_GROUP,
  UDPRoute: GATEWAY_GROUP,
  Ingress: INGRESS_GROUP,
  Service: "",
  ServiceImport: MULTICLUSTER_GROUP,
  TracegateBackend: TRACEGATE_GROUP,
} as const;

export type TargetKind = keyof typeof TARGET_KINDS;

/** What each section of a policy can be attached to. UDP has no policies. */
export const SECTION_TARGETS = {
  frontend: ["Gateway"],
  traffic: ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "Ingress"],
  backend: [
    "Gateway",
    "ListenerSet",
    "HTTPRoute",
    "GRPCRoute",
    "TLSRoute",
    "TCPRoute",
    "Ingress",
    "Service",
    "ServiceImport",
    "TracegateBackend",
  ],
} as const satisfies Record<string, readonly TargetKind[]>;

export type Section = keyof typeof SECTION_TARGETS;
export const SECTIONS: readonly Section[] = ["frontend", "traffic", "backend"];

/** Targets of a policy, and labels of a selector. */
const MAX_TARGETS = 16;

const target = {
  group: z
    .enum(["", GATEWAY_GROUP, INGRESS_GROUP, MULTICLUSTER_GROUP, TRACEGATE_GROUP])
    .describe("Group of the target; empty for Services."),
  kind: z.enum(Object.keys(TARGET_KINDS) as [TargetKind, ...TargetKind[]]).describe("Kind of the target."),
};
const sectionName = z
  .string()
  .min(1)
  .max(253)
  .optional()
  .describe(
    "Only this listener of a Gateway or ListenerSet, rule of a route, or port of a Service or ServiceImport (name or number).",
  );

const targetRef = z.strictObject({
  ...target,
  name: z.string().min(1).max(253).describe("Name of the target, in the namespace of the policy."),
  sectionName,
});

const targetSelector = z.strictObject({
  ...target,
  matchLabels: z.record(z.string(), z.string()).describe("Labels of the targets, in the namespace of the policy."),
  sectionName,
});

const strategy = z.strictObject({
  inheritance: z
    .enum(["Default", "Override"])
    .default("Default")
    .describe(
      "`Default`: policies of narrower targets replace this one, kind by kind. `Override`: this one replaces those of narrower targets.",
    ),
});

export const trafficPhase = z
  .enum(["PreRouting", "PostRouting"])
  .default("PostRouting")
  .describe("`PreRouting`: before a route is selected. `PostRouting`: after. The two do not replace each other.");

const section = z.record(z.string(), z.unknown()).optional();

/** The spec without what is in its sections, which are parsed kind by kind: one that is invalid does not take the others along. */
export const policyFrame = z
  .strictObject({
    targetRefs: z.array(targetRef).min(1).max(MAX_TARGETS).optional(),
    targetSelectors: z.array(targetSelector).min(1).max(MAX_TARGETS).optional(),
    strategy: strategy.optional(),
    frontend: section,
    traffic: section,
    backend: section,
  })
  .refine(({ targetRefs, targetSelectors }) => targetRefs === undefined || targetSelectors === undefined, {
    message: "only one of targetRefs and targetSelectors may be set",
  })
  .refine((spec) => SECTIONS.some((name) => spec[name] !== undefined), {
    message: "one of frontend, traffic, backend is required",
  });

export type PolicyTarget = z.output<typeof targetRef>;
export type PolicySelector = z.output<typeof targetSelector>;

const kinds = kindsOf(POLICY_SCHEMAS);
const runsIn = (kind: PolicyKind, phases: readonly string[]): boolean =>
  KINDS[kind].phases.some((phase) => phases.includes(phase));

/** The kinds of `traffic`. */
export const TRAFFIC_KINDS: readonly PolicyKind[] = kinds.filter((kind) => runsIn(kind, ["gateway", "route"]));
/** Those of them that can run before a route is selected. */
export const PRE_ROUTING_KINDS: readonly PolicyKind[] = kinds.filter((kind) => runsIn(kind, ["gateway"]));
/** The kinds of `backend`. */
export const BACKEND_KINDS: readonly PolicyKind[] = kinds.filter((kind) => runsIn(kind, ["backend"]));

const { proxy: _proxy, logging: _logging, ...frontendFields } = frontendPolicies.shape;
/** The fields of `frontend`: those of `frontendPolicies` without their former names. */
export const FRONTEND_FIELDS = frontendFields;
export type FrontendField = keyof typeof FRONTEND_FIELDS;
