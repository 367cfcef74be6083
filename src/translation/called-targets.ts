import { ms } from "../base/durations.ts";
import type { Path } from "../base/paths.ts";
import type { CelEnvironment } from "../cel/index.ts";
import { defined, type ResolvedCall, type ServiceReference } from "../policies/contract/resolver.ts";
import { callPoliciesOf, type Level, mergeLevels } from "../policies/merge.ts";
import type { PolicyInputs, PolicySet } from "../policies/policy-set.ts";
import type { BackendAuth } from "../policies/schema/backend-auth.ts";
import type { BasicBackendAuth } from "../policies/schema/basic-backend-auth.ts";
import type { CalledService, CalledServiceInput, CallPolicies } from "../policies/schema/call.ts";
import type { TokenEndpointInput, TokenEndpointPolicies } from "../policies/schema/token-endpoint.ts";
import type { Target } from "../upstream/settings/target.ts";
import {
  type CalledInputs,
  exchangesTokens,
  kindsForCalls,
  reportGrpcConflicts,
  serviceKey,
  warnAboutUnappliedPolicies,
} from "./call-policies.ts";
import { isInvalidating, type Report } from "./problems/problem.ts";
import { reportUnknown } from "./references.ts";
import type { Sources } from "./sources.ts";
import { checkTunnel, type HostCheck, parseHost, type TargetContext, translateTarget, urlProblem } from "./target.ts";

/** Milliseconds; default deadline of callouts, as in the reference for extAuthz (3.8). */
const TIMEOUT = ms(2000);
/** Milliseconds; the same for token endpoints, which do more work and are called less often. */
const TOKEN_TIMEOUT = ms(10_000);

/** The inputs for translating the policies of callouts: files, services, and the destination of problems. */
export interface CallContext {
  readonly sources: Sources;
  readonly calledTargets: CalledTargets;
  readonly report: Report;
  readonly cel: CelEnvironment;
}

/** The result of a translation without reports. `invalid`: it has a problem that makes it unusable. */
export interface Quiet<T> {
  readonly value: T;
  readonly invalid: boolean;
}

interface QuietContext {
  readonly context: CallContext;
  /** The path of the value that is being translated. */
  readonly found: { invalid: boolean };
}

/** The sources of a policy that is invalid; others have none. A policy that another one replaces does no harm. */
const INVALID = Symbol("invalid");
type CallLevel = Level<typeof INVALID>;

/** Translates policies of backends. */
export type TranslatePolicies = (input: PolicyInputs, path: Path, context: CallContext) => PolicySet;

/**
 * Resolves the services that policies name as `host`, `service` or `backend`: to a target, the policies of calls to it, and a
 * deadline. Unknown names are reported at their path and become an invalid target.
 */
export class CalledTargets {
  readonly #called: CalledInputs;
  readonly #sources: Sources;
  readonly #context: TargetContext;
  readonly #cel: CelEnvironment;
  readonly #levels = new Map<string, CallLevel>();
  #quiet: QuietContext | undefined;

  constructor(
    called: CalledInputs,
    sources: Sources,
    services: TargetContext["services"],
    report: TargetContext["report"],
    incomplete: TargetContext["incomplete"],
    cel: CelEnvironment,
    hosts?: HostCheck,
  ) {
    this.#cel = cel;
    this.#called = called;
    this.#sources = sources;
    this.#context = { services, routeGroups: new Set(), report, incomplete, hosts };
  }

  /** Translates a value whose mistakes are reported elsewhere, and says whether it has any. */
  quietly<T>(run: (context: CallContext) => T): Quiet<T> {
    const { context, found } = this.#quietContext();
    found.invalid = false;
    const value = run(context);
    return { value, invalid: found.invalid };
  }

  #quietContext(): QuietContext {
    if (this.#quiet !== undefined) return this.#quiet;
    const { services, incomplete, hosts } = this.#context;
    const found = { invalid: false };
    const report: Report = (_path, problem) => {
      found.invalid ||= isInvalidating(problem);
    };
    const sources = this.#sources.again(report);
    const calledTargets = new CalledTargets(this.#called, sources, services, report, incomplete, this.#cel, hosts);
    this.#quiet = { context: { sources, calledTargets, report, cel: this.#cel }, found };
    return this.#quiet;
  }

  /** The target, policies and deadline of a service that a policy calls at `path`. */
  service(
    { policies: own, timeout, ...named }: CalledServiceInput,
    protocol: "grpc" | "http",
    path: Path,
    translate: TranslatePolicies,
  ): ResolvedCall<CallPolicies> {
    const { target, policies } = this.call(named, own, protocol === "grpc", path, translate);
    this.#checkTunnel(target, policies, named, path);
    return defined({ target, policies, timeout: timeout ?? policies?.http?.requestTimeout ?? TIMEOUT });
  }

  /** The same for a token endpoint. Its own credentials must not need a token exchange, which could be circular. */
  tokenEndpoint(
    { policies: own, ...named }: TokenEndpointInput,
    path: Path,
    translate: TranslatePolicies,
  ): ResolvedCall<TokenEndpointPolicies> {
    const { target, policies } = this.call(named, own, false, path, translate, true);
    this.#checkTunnel(target, policies, named, path);
    const timeout = policies?.http?.requestTimeout ?? TOKEN_TIMEOUT;
    if (policies === undefined) return { target, timeout };
    const { backendAuth } = policies;
    const basic = defined({ ...policies, backendAuth: backendAuth && basicOf(backendAuth) });
    return { target, policies: basic, timeout };
  }

  #checkTunnel(target: Target, policies: CallPolicies = {}, { backend }: ServiceReference, path: Path): void {
    checkTunnel(target, policies, path, this.#context.report, () => {
      const { endpoints = [] } = (backend === undefined ? undefined : this.#named(backend)) ?? {};
      return endpoints.flatMap((host) => parseHost(host) ?? []);
    });
  }

  /** The same for mirrored requests, which have no policies of their own. */
  copies(named: ServiceReference, path: Path, translate: TranslatePolicies): CalledService {
    return defined(this.call(named, undefined, false, path, translate));
  }

  /**
   * The target of calls to a service, and their policies: those of the named backend and of `policies[]`, replaced kind by kind by
   * `own`, which the calling policy has at `path.policies`. undefined = none. The target is invalid if the service's policies are: calls must
   * not be made without them, for example unverified. `forToken`: the service is a token endpoint, so its own credentials must not need a
   * token exchange.
   */
  call(
    named: ServiceReference,
    own: PolicyInputs | undefined,
    grpc: boolean,
    path: Path,
    translate: TranslatePolicies,
    forToken = false,
  ): { readonly target: Target; readonly policies?: CallPolicies | undefined } {
    const { report } = this.#context;
    const target = this.find(named, path);
    const { service, backend } = named;
    const [field, name, attached] =
      backend !== undefined
        ? (["backend", backend, this.policiesOf(backend)] as const)
        : service !== undefined
          ? (["service", service.name, this.#ofService(service)] as const)
          : (["host", "", []] as const);
    warnAboutUnappliedPolicies(attached, name, [...path, field], report);
    if (forToken && exchangesTokens(attached)) {
      const message = `${name} itself gets its credentials by token exchange; give its host here instead`;
      report([...path, field], { message });
      return { target };
    }
    const outer = this.#levelOf(`${field} ${name} ${service?.port}`, attached, translate);
    const inner = own === undefined ? {} : translate(own, [...path, "policies"], this.#reporting());
    if (grpc)
      reportGrpcConflicts(
        callPoliciesOf(outer.set),
        callPoliciesOf(inner),
        [...path, field],
        [...path, "policies"],
        report,
      );
    if (Object.values(outer.sources).some((sources = []) => sources.includes(INVALID))) {
      const message = "its own policies are invalid, so calls to it fail until they are corrected";
      report([...path, field], { message, advice: true, warning: true, cause: { code: "invalidDestination" } });
      return { target: { type: "invalid", reference: name } };
    }
    const policies = callPoliciesOf(mergeLevels(outer, { set: inner, sources: {} }).set);
    return { target, policies: Object.keys(policies).length === 0 ? undefined : policies };
  }

  #reporting(): CallContext {
    return { sources: this.#sources, calledTargets: this, report: this.#context.report, cel: this.#cel };
  }

  /** Those of policies of several levels that apply to calls. Translates once per backend: its files need to be read once. */
  #levelOf(key: string, inputs: readonly PolicyInputs[], translate: TranslatePolicies): CallLevel {
    let level = this.#levels.get(key);
    if (level === undefined) {
      level = mergeLevels(
        ...inputs.flatMap((input) =>
          kindsForCalls(input).map((kind): CallLevel => {
            const { value, invalid } = this.quietly((context) => translate({ [kind]: input[kind] }, [], context));
            return { set: value, sources: { [kind]: invalid ? [INVALID] : [] } };
          }),
        ),
      );
      this.#levels.set(key, level);
    }
    return level;
  }

  /** The policies of a named backend as written, the widest first; none for undefined. */
  policiesOf(backend: string | undefined): readonly PolicyInputs[] {
    return (backend === undefined ? undefined : this.#named(backend)?.policies) ?? [];
  }

  /** The same of a service: those for all ports, then those for the port. */
  #ofService({ name, port }: NonNullable<ServiceReference["service"]>): readonly PolicyInputs[] {
    const { services } = this.#called;
    return [...(services.get(serviceKey(name)) ?? []), ...(services.get(serviceKey(name, port)) ?? [])];
  }

  /** Reports a URL that a policy calls, if its host may not be called. */
  checkUrl(url: string, path: Path): void {
    const { hosts, report } = this.#context;
    const problem = urlProblem(url, hosts);
    if (problem !== undefined) report(path, { message: problem.message });
  }

  #named(backend: string) {
    return this.#called.backends.get(backend.replace(/^\//, ""));
  }

  /** The target of a reference. Reports at `path` unless exactly one way is used and it leads to an address. */
  find({ host, service, backend }: ServiceReference, path: Path): Target {
    const set = Object.entries({ host, service, backend }).filter(([, value]) => value !== undefined);
    if (set.length !== 1) {
      const message =
        set.length === 0
          ? "one of host, service, backend is required"
          : `only one of ${set.map(([name]) => name).join(", ")} may be set`;
      this.#context.report(path, {
        message,
        cause: { code: set.length === 0 ? "noDestination" : "invalidDestination" },
      });
      return { type: "invalid", reference: "" };
    }
    if (backend === undefined) return translateTarget({ host, service, backend }, path, this.#context);
    const at = [...path, "backend"];
    const named = this.#named(backend);
    if (named === undefined) {
      const known = [...this.#called.backends.keys()].map((each) => `/${each}`);
      reportUnknown("backend", "backends", backend, known, at, this.#context);
      return { type: "invalid", reference: backend };
    }
    if (named.host !== undefined)
      // Problems of the backend are reported where it is written.
      return translateTarget({ host: named.host, dns: named.dns }, at, {
        ...this.#context,
        hosts: undefined,
        report: () => {},
      });
    if (named.endpoints !== undefined) return { type: "pool", key: `/${backend.replace(/^\//, "")}` };
    this.#context.report(at, {
      message: `${backend} has no fixed address, and a service needs one`,
      expected: "a backend with host or endpoints",
      cause: { code: "invalidDestination" },
    });
    return { type: "invalid", reference: backend };
  }
}

function basicOf(auth: BackendAuth): BasicBackendAuth {
  const { oauthTokenExchange: _exchange, crossAppAccess: _access, ...basic } = auth;
  return basic;
}
