import type { Phase } from "../trace/events.ts";
import { isConditional } from "./conditional/index.ts";
import type { PolicyDeps, PolicyEnvironment } from "./deps.ts";
import { REQUEST_ORDER, RESPONSE_ORDER } from "./order.ts";
import type { PolicyKind, PolicySet } from "./policy-set.ts";
import { effectivePolicy } from "./redact.ts";
import { REGISTRY } from "./registry.ts";
import type { CompiledPolicy } from "./types.ts";

/** The policies of one phase, ready to run in their order. */
export interface CompiledChain {
  /** Those with `onRequest`; empty when there is nothing to do. */
  readonly request: readonly CompiledPolicy[];
  /** Those with `onResponse`. */
  readonly response: readonly CompiledPolicy[];
  /** `effectivePolicy` of a trace: the 17 keys of the interface, null where there is none, and others that are set. */
  readonly effective: Readonly<Record<string, unknown>>;
}

const NONE_EFFECTIVE: Readonly<Record<string, unknown>> = Object.freeze({
  localRateLimit: null,
  remoteRateLimit: null,
  authorization: null,
  jwt: null,
  oidc: null,
  basicAuth: null,
  apiKey: null,
  extAuthz: null,
  extProc: null,
  transformation: null,
  csrf: null,
  directResponse: null,
  requestHeaderModifier: null,
  responseHeaderModifier: null,
  requestRedirect: null,
  urlRewrite: null,
  cors: null,
});

const NOTHING: readonly CompiledPolicy[] = Object.freeze([]);

/** The chain of a phase without policies; always this one object. */
export const NO_POLICIES: CompiledChain = Object.freeze({
  request: NOTHING,
  response: NOTHING,
  effective: NONE_EFFECTIVE,
});

/**
 * Compiles the policies that apply in `phase`. `owner` is what they are attached to: the key of a listener, route or
 * backend. Throws an Error that begins with the kind when a policy cannot run in this phase or its configuration cannot
 * work.
 */
export function compilePolicies(
  set: PolicySet,
  phase: Phase,
  environment: PolicyEnvironment,
  owner: string,
): CompiledChain {
  const created = new Map<PolicyKind, CompiledPolicy>();
  for (const kind of Object.keys(set) as PolicyKind[]) {
    const policy = create(kind, set, phase, { ...environment, phase, identity: `${phase} ${owner} ${kind}` });
    if (policy !== undefined) created.set(kind, policy);
  }
  if (created.size === 0) return NO_POLICIES;
  const redacted = [...created.keys()].map(
    (kind) => [REGISTRY[kind].traceKey ?? kind, effectivePolicy(kind, set[kind], environment.hidden)] as const,
  );
  return {
    request: select(REQUEST_ORDER[phase], created, "onRequest"),
    response: select(RESPONSE_ORDER[phase], created, "onResponse"),
    effective: { ...NONE_EFFECTIVE, ...Object.fromEntries(redacted) },
  };
}

/** The stage of the snapshot that follows a policy: `url rewrite`, `backend request header modifier` (reference 4.2). */
export function stageName(kind: PolicyKind, phase: Phase): string {
  const { traceStage, gatewayTraceStage = traceStage } = REGISTRY[kind];
  if (phase === "route") return traceStage;
  return `${phase} ${phase === "gateway" ? gatewayTraceStage : traceStage}`;
}

function create<Kind extends PolicyKind>(
  kind: Kind,
  set: PolicySet,
  phase: Phase,
  deps: PolicyDeps,
): CompiledPolicy | undefined {
  const config = set[kind];
  if (config === undefined) return undefined;
  const { create, phases } = REGISTRY[kind];
  if (!phases.includes(phase))
    throw new Error(`${kind}: cannot run in the ${phase} phase; attach it where the phase is ${phases.join(" or ")}`);
  if (phase === "backend" && isConditional(config))
    throw new Error(`${kind}.conditional: policies of a backend have no conditions; attach it to routes instead`);
  return create(config, deps);
}

function select(
  order: readonly PolicyKind[],
  created: ReadonlyMap<PolicyKind, CompiledPolicy>,
  hook: "onRequest" | "onResponse",
): readonly CompiledPolicy[] {
  const policies = order.map((kind) => created.get(kind)).filter((policy) => policy !== undefined);
  const running = policies.filter((policy) => policy[hook] !== undefined);
  return running.length === 0 ? NOTHING : running;
}
