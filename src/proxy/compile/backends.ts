/** Compiles the backends of routes. What is counted for a backend survives the reloads that keep it. */
import type { RouteBackend } from "../../ir/ir.ts";
import { compileCallPolicies } from "../../policies/calls/compile.ts";
import { compilePolicies } from "../../policies/compile.ts";
import type { PolicyEnvironment } from "../../policies/contract/deps.ts";
import { callPoliciesOf } from "../../policies/merge.ts";
import type { PolicySet } from "../../policies/policy-set.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { AffinityKey } from "../../upstream/balancers/rendezvous.ts";
import { OutlierDetector } from "../../upstream/calls/outlier.ts";
import { DynamicTarget } from "../../upstream/destinations/dynamic.ts";
import { BackendCalls, type Endpoints } from "../../upstream/endpoints/endpoints.ts";
import { checkIdentity, type HealthCheck } from "../../upstream/endpoints/health-check.ts";
import { RetryBudget } from "../../upstream/endpoints/retry-budget.ts";
import type { RetryBudgetSettings } from "../../upstream/settings/settings.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { CompiledBackend, RetryLimits } from "./compiled.ts";
import type { Outbound, Part } from "./outbound.ts";
import { type FixedLabels, SeriesCache } from "./series-cache.ts";

export class Backends {
  /** By the key of the backend. */
  readonly calls = new Map<string, BackendCalls>();
  /** By the key of the budget. */
  readonly budgets = new Map<string, RetryBudget>();
  readonly #outbound: Outbound;
  readonly #endpoints: Endpoints;
  readonly #metrics: Metrics;

  /** `endpoints` has the counts of the configuration in effect. */
  constructor(outbound: Outbound, endpoints: Endpoints, metrics: Metrics) {
    this.#outbound = outbound;
    this.#endpoints = endpoints;
    this.#metrics = metrics;
  }

  /** Keeps the counts of backends that are taken over as they are. */
  takeOver(backends: readonly CompiledBackend[]): void {
    for (const { key, calls, retries } of backends) {
      this.calls.set(key, calls);
      if (retries?.budget !== undefined) this.budgets.set(retries.budget.key, retries.budget);
    }
  }

  /** Compiles a backend of `part`. `scope`: what its expressions can read. */
  compile(
    backend: RouteBackend,
    labels: FixedLabels,
    scope: "request" | "network",
    { uses, environment }: Part,
  ): CompiledBackend {
    const { key, weight, policies } = backend;
    const { balancer, target } = this.#outbound.destination(
      backend.target,
      policies,
      uses,
      healthCheck(policies, environment),
    );
    const { health, sessionAffinity, http } = policies;
    const { cel } = environment;
    const expression = target.type === "dynamic" ? target.expression : undefined;
    // Fields that every request reads come first, so that they share one or two cache lines.
    return {
      policies: compilePolicies(policies, "backend", environment, key),
      requestTimeout: http?.requestTimeout,
      balancer,
      target,
      calls: this.#callsOf(key, http?.maxRetries !== undefined),
      outliers: health && new OutlierDetector(health, cel),
      retries: this.#retryLimits(backend),
      affinity: sessionAffinity && new AffinityKey(sessionAffinity, cel),
      series: new SeriesCache(this.#metrics, labels, key),
      key,
      weight,
      dynamic: expression === undefined ? undefined : new DynamicTarget(expression, scope, cel),
      connection: target.type === "dynamic" ? this.#outbound.dynamicConnection(policies, uses) : undefined,
    };
  }

  #retryLimits({ key, target, policies: { http, retryBudget } }: RouteBackend): RetryLimits | undefined {
    if (http?.maxRetries === undefined && retryBudget === undefined) return undefined;
    return {
      max: http?.maxRetries ?? Number.POSITIVE_INFINITY,
      budget: retryBudget && this.#budgetOf(target, retryBudget),
      overflows: this.#metrics.count("retry_overflow_total", key),
    };
  }

  /** Routes to one target with the same settings share a budget. */
  #budgetOf(target: Target, settings: RetryBudgetSettings): RetryBudget {
    const key = JSON.stringify([target, settings]);
    const budget = this.budgets.get(key) ?? this.#endpoints.budgets.get(key) ?? new RetryBudget(key, settings);
    this.budgets.set(key, budget);
    return budget;
  }

  #callsOf(key: string, limitsRetries: boolean): BackendCalls {
    const calls = this.calls.get(key) ?? this.#endpoints.calls.get(key) ?? new BackendCalls();
    if (limitsRetries) this.#endpoints.shareRetries(calls, key);
    this.calls.set(key, calls);
    return calls;
  }
}

/** Conditional transformations do not apply to probes, which have no client request for their conditions. */
function healthCheck(policies: PolicySet, environment: PolicyEnvironment): HealthCheck | undefined {
  const identity = checkIdentity(policies);
  const settings = policies.health?.active;
  if (identity === undefined || settings === undefined) return undefined;
  return { settings, identity, prepare: compileCallPolicies(callPoliciesOf(policies), environment) };
}
