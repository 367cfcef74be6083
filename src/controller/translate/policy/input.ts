/** A TracegatePolicy as its author wrote it: parsed kind by kind, with references in the syntax of the configuration file. */
import type { z } from "zod";
import type { Path } from "../../../base/paths.ts";
import { suggest } from "../../../base/suggest.ts";
import type { PolicyInputs, PolicyKind } from "../../../policies/policy-set.ts";
import { POLICY_SCHEMAS } from "../../../policies/schemas.ts";
import type { FrontendInput } from "../../../translation/schema/frontend.ts";
import { isAllShadow } from "../../../translation/shadow-policies.ts";
import { parseAt } from "../../crd/parse-spec.ts";
import {
  BACKEND_KINDS,
  FRONTEND_FIELDS,
  type FrontendField,
  type PolicySelector,
  type PolicyTarget,
  PRE_ROUTING_KINDS,
  policyFrame,
  type Section,
  TRAFFIC_KINDS,
  trafficPhase,
} from "../../crd/policy.ts";
import { toFileSyntax } from "../../crd/references.ts";
import { defineQuery, type Read } from "../../graph/graph.ts";
import type { LintFinding } from "../model/conditions.ts";
import { type Aged, createdAt } from "../model/precedence.ts";
import { type Callee, clusterNames, type Referrer } from "./names.ts";
import { Problems } from "./problems.ts";

export interface PolicyInput extends Aged {
  readonly namespace: string;
  readonly generation: number;
  readonly targetRefs: readonly PolicyTarget[];
  readonly targetSelectors: readonly PolicySelector[];
  readonly override: boolean;
  /** `strategy.inheritance` is written, so the author has decided. */
  readonly decidesInheritance: boolean;
  /** Of `traffic`. */
  readonly phase: "gateway" | "route";
  readonly sections: readonly Section[];
  readonly frontend: FrontendInput;
  readonly traffic: PolicyInputs;
  readonly backend: PolicyInputs;
  /** Kinds and fields that could not be parsed. */
  readonly invalid: {
    readonly frontend: readonly FrontendField[];
    readonly traffic: readonly PolicyKind[];
    readonly backend: readonly PolicyKind[];
  };
  /** Services and backends that it calls. */
  readonly callees: readonly Callee[];
  readonly problems: readonly string[];
  readonly findings: readonly LintFinding[];
}

/** Key: `<namespace>/<name>`; undefined: there is no such policy. */
export const policyInput = defineQuery<PolicyInput | undefined>("policyInput", (read, key) => {
  const policy = read.get("TracegatePolicy", key);
  if (policy === undefined) return undefined;
  const { namespace, generation = 0 } = policy.metadata;
  const problems = new Problems();
  const frame = parseAt(policyFrame, policy.spec, ["spec"], problems.report);
  const { phase: writtenPhase, ...traffic } = frame?.traffic ?? {};
  const phase = parseAt(trafficPhase, writtenPhase, ["spec", "traffic", "phase"], problems.report);
  const reader = new SectionReader(read, { kind: "TracegatePolicy", namespace }, problems);
  const kinds = phase === "PreRouting" ? PRE_ROUTING_KINDS : TRAFFIC_KINDS;
  const inputs = {
    frontend: reader.read(frame?.frontend ?? {}, FRONTEND_FIELDS, ["spec", "frontend"]),
    traffic: reader.read(traffic, schemasOf(kinds), ["spec", "traffic"], schemasOf(TRAFFIC_KINDS)),
    backend: reader.read(frame?.backend ?? {}, schemasOf(BACKEND_KINDS), ["spec", "backend"]),
  };
  return {
    key,
    namespace,
    generation,
    created: createdAt(policy),
    targetRefs: frame?.targetRefs ?? [],
    targetSelectors: frame?.targetSelectors ?? [],
    decidesInheritance: isInheritanceWritten(policy.spec),
    override: frame?.strategy?.inheritance === "Override",
    phase: phase === "PreRouting" ? "gateway" : "route",
    sections: (["frontend", "traffic", "backend"] as const).filter((name) => frame?.[name] !== undefined),
    frontend: inputs.frontend.value as FrontendInput,
    traffic: inputs.traffic.value as PolicyInputs,
    backend: inputs.backend.value as PolicyInputs,
    invalid: {
      frontend: inputs.frontend.invalid as FrontendField[],
      traffic: inputs.traffic.invalid as PolicyKind[],
      backend: inputs.backend.invalid as PolicyKind[],
    },
    callees: reader.callees,
    problems: problems.errors,
    findings: problems.findings,
  };
});

function isInheritanceWritten(spec: unknown): boolean {
  const { strategy } = Object(spec) as { readonly strategy?: unknown };
  return (Object(strategy) as { readonly inheritance?: unknown }).inheritance !== undefined;
}

/** The policies of a TracegateBackend, as written. */
export interface BackendInput {
  readonly policies: PolicyInputs;
  readonly invalid: readonly PolicyKind[];
  readonly callees: readonly Callee[];
}

/** Parses `spec.policies` of a TracegateBackend. */
export function readBackendPolicies(
  read: Read,
  namespace: string,
  policies: Readonly<Record<string, unknown>>,
  problems: Problems,
): BackendInput {
  const reader = new SectionReader(read, { kind: "TracegateBackend", namespace }, problems);
  const { value, invalid } = reader.read(policies, schemasOf(BACKEND_KINDS), ["spec", "policies"]);
  return { policies: value as PolicyInputs, invalid: invalid as PolicyKind[], callees: reader.callees };
}

type Schemas = Readonly<Record<string, z.ZodType>>;

function schemasOf(kinds: readonly PolicyKind[]): Schemas {
  return Object.fromEntries(kinds.map((kind) => [kind, POLICY_SCHEMAS[kind].schema]));
}

/** Parses the fields of sections one by one. */
class SectionReader {
  readonly callees: Callee[] = [];
  readonly #read: Read;
  readonly #from: Referrer;
  readonly #problems: Problems;

  constructor(read: Read, from: Referrer, problems: Problems) {
    this.#read = read;
    this.#from = from;
    this.#problems = problems;
  }

  /** `others`: fields that the section knows and that cannot be used here. */
  read(
    section: Readonly<Record<string, unknown>>,
    schemas: Schemas,
    path: Path,
    others: Schemas = {},
  ): { readonly value: Readonly<Record<string, unknown>>; readonly invalid: readonly string[] } {
    const value: Record<string, unknown> = {};
    const invalid: string[] = [];
    for (const [field, written] of Object.entries(section)) {
      if (written === undefined || written === null) continue;
      const schema = Object.hasOwn(schemas, field) ? schemas[field] : undefined;
      const parsed = schema === undefined ? undefined : this.#parse(schema, written, [...path, field]);
      if (parsed !== undefined) value[field] = parsed;
      // What is in shadow restricts nothing, so nothing has to take its place.
      else if ((schema !== undefined || Object.hasOwn(others, field)) && !isAllShadow(field, written))
        invalid.push(field);
      if (schema === undefined) this.#reportUnknown(field, path, schemas, others);
    }
    return { value, invalid };
  }

  #parse(schema: z.ZodType, written: unknown, path: Path): unknown {
    const { report } = this.#problems;
    let readable = true;
    const names = clusterNames(this.#read, this.#from, this.callees, report, () => {
      readable = false;
    });
    const rewritten = toFileSyntax(written, path, names, report);
    return readable ? parseAt(schema, rewritten, path, report) : undefined;
  }

  #reportUnknown(field: string, path: Path, schemas: Schemas, others: Schemas): void {
    const { report } = this.#problems;
    if (Object.hasOwn(others, field)) {
      report([...path, field], { message: "cannot run before a route is selected; set phase to PostRouting" });
      return;
    }
    const suggestion = suggest(field, Object.keys(schemas));
    report([...path, field], { message: "unknown field", ...(suggestion !== undefined && { suggestion }) });
  }
}
