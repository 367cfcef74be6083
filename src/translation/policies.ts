import type { Path } from "../base/paths.ts";
import type { CelEnvironment } from "../cel/index.ts";
import { checkPolicies } from "../policies/compile.ts";
import type { PolicyProblem } from "../policies/contract/policy-error.ts";
import type { ResolvedCall, Resolver, ServiceReference } from "../policies/contract/resolver.ts";
import { kindsOf, NO_POLICY_SET } from "../policies/merge.ts";
import type { PolicyConfig, PolicyInputs, PolicyKind, PolicySet, ResolveTable } from "../policies/policy-set.ts";
import { namesMethods } from "../policies/retry/index.ts";
import type { CalledService, CalledServiceInput, CallPolicies } from "../policies/schema/call.ts";
import type { FileName, TextSource } from "../policies/schema/source.ts";
import type { TokenEndpointInput, TokenEndpointPolicies } from "../policies/schema/token-endpoint.ts";
import type { BackendTunnelInput } from "../policies/schema/upstream-settings.ts";
import { POLICY_SCHEMAS } from "../policies/schemas.ts";
import type { Phase } from "../trace/events.ts";
import type { BackendTunnel } from "../upstream/settings/settings.ts";
import { adviseOnLogout, adviseOnPolicies, adviseOnRules } from "./advice.ts";
import { translateBackendTunnel } from "./backend-tunnel.ts";
import type { CallContext, Quiet, TranslatePolicies } from "./called-targets.ts";
import { lint } from "./problems/lint.ts";
import type { Report } from "./problems/problem.ts";
import { asEnforced, withShadows } from "./shadow-policies.ts";

/** Checked here: a kind whose `resolve` does not give what runs does not compile. */
const TABLE: ResolveTable = POLICY_SCHEMAS;

/**
 * The policies at `path` as runtime types; problems that the policies find themselves are reported as precisely as they say. `around`: what
 * is written there beside a part that is translated alone.
 */
export function translatePolicies(
  input: PolicyInputs | undefined,
  phase: Phase,
  path: Path,
  { sources, calledTargets, report, cel }: CallContext,
  around: PolicyInputs = input ?? {},
): PolicySet {
  if (input === undefined) return NO_POLICY_SET;
  const set = resolvePolicies(asEnforced(input), new PolicyResolver(path, { sources, calledTargets, report, cel }));
  const separate = withShadows(set, input);
  if (validatePolicies(set, phase, path, report, cel)) {
    noteRetry(set, path, report, cel);
    adviseOnPolicies(set, around, path, report, cel);
    if (phase === "gateway") adviseOnLogout(set, path, report);
    const { authorization } = set;
    if (authorization !== undefined)
      adviseOnRules(authorization.rules, "request", [...path, "authorization", "rules"], report, cel);
  }
  return separate;
}

/** The policies of calls to a service. */
export const translateCallPolicies: TranslatePolicies = (input, path, context) =>
  translatePolicies(input, "backend", path, context);

type Resolving = { -readonly [Kind in PolicyKind]?: PolicyConfig<Kind> | undefined };

/** Drops absent kinds, so that an empty set has no keys. */
function resolvePolicies(input: PolicyInputs, resolver: Resolver): PolicySet {
  const set: Resolving = {};
  for (const kind of kindsOf(input)) resolveKind(kind, input, set, resolver.within(kind));
  return set;
}

function resolveKind<Kind extends PolicyKind>(
  kind: Kind,
  input: PolicyInputs,
  set: Resolving,
  resolver: Resolver,
): void {
  const written = input[kind];
  if (written !== undefined) set[kind] = TABLE[kind].resolve(written, resolver);
}

/** Reads files, documents and references of a configuration for the policy at `path`. */
class PolicyResolver implements Resolver {
  readonly #path: Path;
  readonly #context: CallContext;

  constructor(path: Path, context: CallContext) {
    this.#path = path;
    this.#context = context;
  }

  within(...path: Path): Resolver {
    return new PolicyResolver([...this.#path, ...path], this.#context);
  }

  quietly<T>(run: (resolver: Resolver) => T): Quiet<T> {
    return this.#context.calledTargets.quietly((context) => run(new PolicyResolver(this.#path, context)));
  }

  report(path: Path, problem: { readonly message: string; readonly expected?: string }): void {
    this.#context.report([...this.#path, ...path], problem);
  }

  text(path: Path, source: TextSource): string | undefined {
    return this.#context.sources.readText([...this.#path, ...path], source);
  }

  file(path: Path, { fileName }: FileName): string | undefined {
    return this.#context.sources.readFile([...this.#path, ...path], fileName);
  }

  called(path: Path, url: string): void {
    this.#context.calledTargets.checkUrl(url, [...this.#path, ...path]);
  }

  fetched(path: Path, url: string): string | undefined {
    return this.#context.sources.readUrl([...this.#path, ...path], url);
  }

  service(call: CalledServiceInput, protocol: "grpc" | "http"): ResolvedCall<CallPolicies> {
    return this.#context.calledTargets.service(call, protocol, this.#path, translateCallPolicies);
  }

  tokenEndpoint(endpoint: TokenEndpointInput): ResolvedCall<TokenEndpointPolicies> {
    return this.#context.calledTargets.tokenEndpoint(endpoint, this.#path, translateCallPolicies);
  }

  copies(path: Path, reference: ServiceReference): CalledService {
    return this.#context.calledTargets.copies(reference, [...this.#path, ...path], translateCallPolicies);
  }

  proxy(tunnel: BackendTunnelInput): BackendTunnel {
    return translateBackendTunnel(tunnel, this.#path, this.#context, this);
  }
}

/** Reports the problems that policies find themselves, such as a header that may not be set. False if there are any. */
function validatePolicies(set: PolicySet, phase: Phase, path: Path, report: Report, cel: CelEnvironment): boolean {
  const problems = checkPolicies(set, phase, cel);
  for (const problem of problems) reportProblem(problem, path, report);
  return problems.length === 0;
}

/** Reports problems at `path` or below. */
export function reportProblem({ path: at, key, reason }: PolicyProblem, path: Path, report: Report): void {
  report([...path, ...at], { message: reason }, key);
}

function noteRetry({ retry }: PolicySet, path: Path, report: Report, cel: CelEnvironment): void {
  if (retry === undefined || namesMethods(retry, cel)) return;
  lint(report, [...path, "retry"], "retried-methods", IDEMPOTENT);
}

const IDEMPOTENT = `'request.method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]'`;
