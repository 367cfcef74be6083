/**
 * Compiles the policies of one level: checks that each kind may run in the phase, prepares it, binds it to the data plane, and puts
 * the hooks into the order of `order.ts`. Workers call `compilePolicies` when a configuration loads; the loading thread calls
 * `checkPolicies`, which does the same without a data plane.
 */
import type { CelEnvironment } from "../cel/index.ts";
import type { Phase } from "../trace/events.ts";
import type { SettingKind } from "../upstream/settings/settings.ts";
import type { PolicyEnvironment } from "./contract/deps.ts";
import { PolicyError, type PolicyProblem } from "./contract/policy-error.ts";
import { isShadowable, shadowKey } from "./contract/shadow.ts";
import type { PolicyHooks } from "./contract/types.ts";
import { isConditional } from "./define/conditional.ts";
import type { Bind, Hidden, Policy } from "./define/policy.ts";
import { kindsOf } from "./merge.ts";
import { FINAL_ORDER, REQUEST_ORDER, RESPONSE_ORDER } from "./order.ts";
import type { PolicyConfig, PolicySet, RequestPolicyKey, RequestPolicyKind, SetKey } from "./policy-set.ts";
import { KINDS, REGISTRY, SHADOWS } from "./registry.ts";
import { isSetting, UPSTREAM_SETTINGS } from "./upstream-settings/index.ts";

/** A policy of a chain. */
export interface CompiledPolicy extends PolicyHooks {
  readonly kind: RequestPolicyKey;
  readonly phase: Phase;
}

/** The policies of one phase, in the order in which they run. */
export interface CompiledChain {
  /** Policies with `onRequest`. */
  readonly request: readonly CompiledPolicy[];
  /** Policies with `onResponse`. */
  readonly response: readonly CompiledPolicy[];
  /** Policies with `onResponse` that run after those of all phases. */
  readonly final: readonly CompiledPolicy[];
  /** `effectivePolicy` of a trace: the 17 keys of the interface, null if not set, and others that are set. */
  readonly effective: Readonly<Record<string, unknown>>;
}

/** The 17 keys of reference 4.2, by their names in traces, which differ from those of some kinds. */
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

/** The chain of a phase without policies: one shared object, which counts with thousands of routes. */
export const NO_POLICIES: CompiledChain = Object.freeze({
  request: NOTHING,
  response: NOTHING,
  final: NOTHING,
  effective: NONE_EFFECTIVE,
});

/**
 * Compiles the policies that apply in `phase`. `owner` is what they are attached to: the key of a listener, route or
 * backend. `placeOf` names where the policy of a kind is written. Throws a PolicyError, whose path begins with the kind, when a policy cannot run in this phase or its
 * configuration cannot work.
 */
export function compilePolicies(
  set: PolicySet,
  phase: Phase,
  environment: PolicyEnvironment,
  owner: string,
  placeOf: (kind: SetKey) => string = () => owner,
): CompiledChain {
  const kinds = kindsOf(set);
  if (kinds.length === 0) return NO_POLICIES;
  const created = new Map<RequestPolicyKey, CompiledPolicy>();
  const effective: Record<string, unknown> = { ...NONE_EFFECTIVE };
  for (const kind of kinds) {
    const config = set[kind];
    if (config === undefined) continue;
    const bind = prepareKind(kind, set, phase, environment.cel);
    if (bind !== undefined && !isSetting(kind)) {
      const deps = {
        ...environment,
        phase,
        identity: `${phase} ${owner} ${kind}`,
        shared: `${phase} ${placeOf(kind)} ${kind}`,
      };
      // A number, such as that of `maxRequestBodySize`, leaves a rehearsal nothing to assume.
      const rehearsed = typeof config === "object" ? environment.rehearsed?.(deps, kind, config) : undefined;
      created.set(kind, { kind, phase, ...bind(rehearsed ?? deps) });
    }
    effective[traceKeyOf(kind)] = traceView(kind, set, environment.hidden);
  }
  return {
    request: select(REQUEST_ORDER[phase], created, "onRequest"),
    response: select(RESPONSE_ORDER[phase], created, "onResponse"),
    final: select(FINAL_ORDER[phase], created, "onResponse"),
    effective,
  };
}

/** The name of a kind in `effectivePolicy` of traces. */
export function traceKeyOf(kind: SetKey): string {
  return KINDS[kind].traceKey ?? kind;
}

/**
 * Problems of policies in `phase` that schemas cannot see, such as a duplicate key or an invalid expression; empty if all are valid.
 * Called when a configuration is validated, without a data plane.
 */
export function checkPolicies(set: PolicySet, phase: Phase, cel: CelEnvironment): readonly PolicyProblem[] {
  return kindsOf(set).flatMap((kind) => {
    try {
      prepareKind(kind, set, phase, cel);
      return [];
    } catch (error) {
      if (error instanceof PolicyError) return error.problems;
      throw error;
    }
  });
}

/** The stage of the snapshot that follows a policy: `url rewrite`, `backend request header modifier` (docs/trace-events.md). */
export function stageName(kind: RequestPolicyKey, phase: Phase): string {
  const words = kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const { traceStage = words, gatewayTraceStage = traceStage } = RUNNABLE[kind];
  if (phase === "route") return traceStage;
  return `${phase} ${phase === "gateway" ? gatewayTraceStage : traceStage}`;
}

/** Checks that the kind may run in this phase, and prepares it; undefined if nothing runs, as for settings of connections. */
function prepareKind(kind: SetKey, set: PolicySet, phase: Phase, cel: CelEnvironment): Bind | undefined {
  const { phases } = KINDS[kind];
  if (set[kind] !== undefined && !phases.includes(phase))
    throw PolicyError.at(
      [kind],
      `cannot run in the ${phase} phase; attach it where the phase is ${phases.join(" or ")}`,
    );
  if (phase === "backend" && isConditional(set[kind]))
    throw PolicyError.at(
      [kind, "conditional"],
      "policies of a backend have no conditions; attach it to routes instead",
    );
  if (!isSetting(kind)) return preparePolicy(kind, set, cel);
  checkSetting(kind, set, cel);
  return undefined;
}

function preparePolicy<Name extends RequestPolicyKey>(
  kind: Name,
  set: PolicySet,
  cel: CelEnvironment,
): Bind | undefined {
  const config = set[kind];
  return config === undefined ? undefined : RUNNABLE[kind].prepare(config, cel);
}

function checkSetting<Name extends SettingKind>(kind: Name, set: PolicySet, cel: CelEnvironment): void {
  const config = set[kind];
  if (config !== undefined) UPSTREAM_SETTINGS[kind].check(config, cel);
}

function traceView<Kind extends SetKey>(kind: Kind, set: PolicySet, hidden: Hidden): unknown {
  const config = set[kind];
  return config === undefined ? undefined : KINDS[kind].traceView(config, hidden);
}

const RUNNABLE: { readonly [Key in RequestPolicyKey]: Policy<Key, PolicyConfig<Key>> } = {
  ...REGISTRY,
  ...SHADOWS,
};

/** A shadow policy runs before the enforced one of its kind. */
export function withShadows(order: readonly RequestPolicyKind[]): readonly RequestPolicyKey[] {
  return order.flatMap((kind): RequestPolicyKey[] => (isShadowable(kind) ? [shadowKey(kind), kind] : [kind]));
}

/** The created policies that have `hook`, in the given order. */
function select(
  order: readonly RequestPolicyKind[],
  created: ReadonlyMap<RequestPolicyKey, CompiledPolicy>,
  hook: "onRequest" | "onResponse",
): readonly CompiledPolicy[] {
  const policies = withShadows(order)
    .map((key) => created.get(key))
    .filter((policy) => policy !== undefined);
  const running = policies.filter((policy) => policy[hook] !== undefined);
  return running.length === 0 ? NOTHING : running;
}
