import { ms } from "../base/durations.ts";
import type { Path } from "../base/paths.ts";
import type { CelEnvironment } from "../cel/index.ts";
import { defined, type ResolvedCall, type ServiceReference } from "../policies/contract/resolver.ts";
import type { PolicyInputs } from "../policies/policy-set.ts";
import type { BackendAuth } from "../policies/schema/backend-auth.ts";
import type { BasicBackendAuth } from "../policies/schema/basic-backend-auth.ts";
import type { CalledService, CalledServiceInput, CallPolicies } from "../policies/schema/call.ts";
import type { TokenEndpointInput, TokenEndpointPolicies } from "../policies/schema/token-endpoint.ts";
import type { Target } from "../upstream/settings/target.ts";
import {
  AttachedPolicies,
  type CalledInputs,
  exchangesTokens,
  policiesForCalls,
  reportGrpcConflicts,
  warnAboutUnappliedPolicies,
} from "./call-policies.ts";
import { isInvalidating, type Report } from "./problems/problem.ts";
import { reportUnknown } from "./references.ts";
import type { Sources } from "./sources.ts";
import { checkTunnel, type HostCheck, type TargetContext, translateTarget, urlProblem } from "./target.ts";

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

/** Translates policies of backends. */
export type TranslatePolicies = (input: PolicyInputs, path: Path, context: CallContext) => CallPolicies;

/**
 * Resolves the services that policies name as `host`, `service` or `backend`: to a target, the policies of calls to it, and a
 * deadline. Unknown names are reported at their path and become an invalid target.
 */
export class CalledTargets {
  readonly #config: CalledInputs;
  readonly #backends: ReadonlyMap<string, CalledInputs["backends"][number]>;
  readonly #attached: AttachedPolicies;
  readonly #sources: Sources;
  readonly #context: TargetContext;
  readonly #cel: CelEnvironment;
  readonly #translated = new Map<string, Quiet<CallPolicies>>();
  #quiet: QuietContext | undefined;

  constructor(
    config: CalledInputs,
    sources: Sources,
    services: TargetContext["services"],
    report: TargetContext["report"],
    incomplete: TargetContext["incomplete"],
    cel: CelEnvironment,
    hosts?: HostCheck,
  ) {
    this.#cel = cel;
    this.#config = config;
    this.#backends = new Map(config.backends.map((each) => [each.name, each]));
    this.#attached = new AttachedPolicies(config);
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
    const calledTargets = new CalledTargets(this.#config, sources, services, report, incomplete, this.#cel, hosts);
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
    checkTunnel(target, policies ?? {}, path, this.#context.report);
    return defined({ target, policies, timeout: timeout ?? policies?.http?.requestTimeout ?? TIMEOUT });
  }

  /** The same for a token endpoint. Its own credentials must not need a token exchange, which could be circular. */
  tokenEndpoint(
    { policies: own, ...named }: TokenEndpointInput,
    path: Path,
    translate: TranslatePolicies,
  ): ResolvedCall<TokenEndpointPolicies> {
    const { target, policies } = this.call(named, own, false, path, translate, true);
    checkTunnel(target, policies ?? {}, path, this.#context.report);
    const timeout = policies?.http?.requestTimeout ?? TOKEN_TIMEOUT;
    if (policies === undefined) return { target, timeout };
    const { backendAuth } = policies;
    const basic = defined({ ...policies, backendAuth: backendAuth && basicOf(backendAuth) });
    return { target, policies: basic, timeout };
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
        ? (["backend", backend, this.#attached.ofBackend(nameOf(backend))] as const)
        : service !== undefined
          ? (["service", service.name, this.#attached.ofService(service.name, service.port)] as const)
          : (["host", "", {}] as const);
    warnAboutUnappliedPolicies(attached, name, [...path, field], report);
    if (forToken && exchangesTokens(attached)) {
      const message = `${name} itself gets its credentials by token exchange; give its host here instead`;
      report([...path, field], { message });
      return { target };
    }
    const outer = this.#translate(`${field} ${name} ${service?.port}`, policiesForCalls(attached), translate);
    const inner = own === undefined ? {} : translate(own, [...path, "policies"], this.#reporting());
    if (grpc) reportGrpcConflicts(outer.value, inner, [...path, field], [...path, "policies"], report);
    if (outer.invalid) {
      const message = "its own policies are invalid, so calls to it fail until they are corrected";
      report([...path, field], { message, advice: true, warning: true, cause: { code: "invalidDestination" } });
      return { target: { type: "invalid", reference: name } };
    }
    const policies = { ...outer.value, ...inner };
    return { target, policies: Object.keys(policies).length === 0 ? undefined : policies };
  }

  #reporting(): CallContext {
    return { sources: this.#sources, calledTargets: this, report: this.#context.report, cel: this.#cel };
  }

  /** Translates once per backend: many routes may name the same one, and its files need to be read once. */
  #translate(key: string, input: PolicyInputs, translate: TranslatePolicies): Quiet<CallPolicies> {
    let translated = this.#translated.get(key);
    if (translated === undefined) {
      translated = this.quietly((context) => translate(input, [], context));
      this.#translated.set(key, translated);
    }
    return translated;
  }

  /** The policies of a named backend, as written; none for undefined. */
  policiesOf(backend: string | undefined): PolicyInputs {
    return backend === undefined ? {} : this.#attached.ofBackend(nameOf(backend));
  }

  /** Reports a URL that a policy calls, if its host may not be called. */
  checkUrl(url: string, path: Path): void {
    const { hosts, report } = this.#context;
    const problem = urlProblem(url, hosts);
    if (problem !== undefined) report(path, { message: problem.message });
  }

  #named(backend: string): CalledInputs["backends"][number] | undefined {
    return this.#backends.get(nameOf(backend));
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
      const known = [...this.#backends.keys()].map((each) => `/${each}`);
      reportUnknown("backend", "backends", backend, known, at, this.#context);
      return { type: "invalid", reference: backend };
    }
    if (named.host !== undefined)
      // Problems of the backend are reported where it is written.
      return translateTarget({ host: named.host }, at, {
        ...this.#context,
        hosts: undefined,
        report: () => {},
      });
    this.#context.report(at, {
      message: `${backend} has no fixed address, and a service needs one`,
      expected: "a backend with host",
      cause: { code: "invalidDestination" },
    });
    return { type: "invalid", reference: backend };
  }
}

function nameOf(backend: string): string {
  return backend.replace(/^\//, "");
}

function basicOf(auth: BackendAuth): BasicBackendAuth {
  const { oauthTokenExchange: _exchange, crossAppAccess: _access, ...basic } = auth;
  return basic;
}
