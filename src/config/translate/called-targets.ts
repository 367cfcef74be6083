import type { CelEnvironment } from "../../cel/index.ts";
import type { CallPolicies } from "../../policies/calls/schema.ts";
import type { Target } from "../../upstream/target.ts";
import type { Report } from "../parse/document.ts";
import type { Path } from "../parse/paths.ts";
import type { ConfigFile } from "../schema/config.ts";
import { AttachedPolicies, type RawPolicies } from "./attached-policies.ts";
import { exchangesTokens, holding, reportForGrpc, tellNotHolding } from "./call-policies.ts";
import { reportUnknown } from "./references.ts";
import type { Sources } from "./sources.ts";
import { checkTunnel, type TargetContext, translateTarget } from "./target.ts";

/** Kinds that name a service which the gateway asks. */
const CALLING: ReadonlySet<string> = new Set(["extAuthz", "extProc", "networkExtAuthz", "remoteRateLimit"]);
/** Milliseconds for the answer of a service when nothing else is said. */
const TIMEOUT = 2000;
/** The same for token endpoints. */
const TOKEN_TIMEOUT = 10_000;

interface Named {
  readonly host?: string | undefined;
  readonly service?: { readonly name: string; readonly port: number } | undefined;
  readonly backend?: string | undefined;
}

/** A policy that asks a service, as the schema gives it. */
interface Calling extends Named {
  readonly policies?: RawPolicies;
  readonly timeout?: number;
  readonly protocol?: object;
}

/** `backendAuth`, as the schema gives it. */
interface BackendAuthInput {
  readonly oauthTokenExchange?: Calling;
  readonly crossAppAccess?: { readonly identityProvider: Calling; readonly resourceAuthorizationServer: Calling };
}

const TOKEN_ENDPOINTS = ["identityProvider", "resourceAuthorizationServer"] as const;

type Backends = ConfigFile["backends"];

/** Where the policies of calls find files and services, and whom they tell of mistakes. */
export interface CallContext {
  readonly sources: Sources;
  readonly calledTargets: CalledTargets;
  readonly report: Report;
  readonly cel: CelEnvironment;
}

/** Translates policies of backends. */
export type TranslatePolicies = (input: RawPolicies, path: Path, context: CallContext) => CallPolicies;

/** Finds the services that policies name as `host`, `service` or `backend`, with the policies of calls to them. */
export class CalledTargets {
  readonly #config: Pick<ConfigFile, "backends" | "policies">;
  readonly #backends: ReadonlyMap<string, Backends[number]>;
  readonly #attached: AttachedPolicies;
  readonly #sources: Sources;
  readonly #context: TargetContext;
  readonly #cel: CelEnvironment;
  readonly #translated = new Map<string, CallPolicies>();
  #withoutDiagnostics: CallContext | undefined;

  constructor(
    config: Pick<ConfigFile, "backends" | "policies">,
    sources: Sources,
    services: TargetContext["services"],
    report: TargetContext["report"],
    incomplete: TargetContext["incomplete"],
    cel: CelEnvironment,
  ) {
    this.#cel = cel;
    this.#config = config;
    this.#backends = new Map(config.backends.map((each) => [each.name, each]));
    this.#attached = new AttachedPolicies(config);
    this.#sources = sources;
    this.#context = { services, routeGroups: new Set(), report, incomplete };
  }

  /** For what stands elsewhere too, where its mistakes are reported. */
  get withoutDiagnostics(): CallContext {
    const { services, incomplete } = this.#context;
    this.#withoutDiagnostics ??= {
      sources: this.#sources.withoutDiagnostics(),
      calledTargets: new CalledTargets(
        this.#config,
        this.#sources.withoutDiagnostics(),
        services,
        silentReport,
        incomplete,
        this.#cel,
      ),
      report: silentReport,
      cel: this.#cel,
    };
    return this.#withoutDiagnostics;
  }

  /** A policy with `target` in the place of the three; what they name and is not there is reported. */
  fill(kind: string, policy: unknown, path: Path, translate: TranslatePolicies): unknown {
    if (kind === "requestMirror")
      return [policy].flat().map((each, i) => this.#mirror(each, i, policy, path, translate));
    if (kind === "backendAuth") return this.#backendAuth(policy as BackendAuthInput, path, translate);
    if (!CALLING.has(kind) || typeof policy !== "object" || policy === null) return policy;
    if ("conditional" in policy) {
      const list = policy.conditional as readonly unknown[];
      return { conditional: list.map((each, i) => this.fill(kind, each, [...path, "conditional", i], translate)) };
    }
    const { host, service, backend, policies: own, timeout, ...others } = policy as Calling;
    const named = { host, service, backend };
    const grpc = !("http" in (others.protocol ?? {}));
    const target = this.find(named, path);
    const policies = this.callPolicies(named, own, grpc, path, translate);
    checkTunnel(target, policies ?? {}, path, this.#context.report);
    const timeoutMs = timeout ?? policies?.http?.requestTimeout ?? TIMEOUT;
    return withoutUndefined({ target, policies, timeout: timeoutMs, ...others });
  }

  /** `backendAuth` with the token endpoints that it asks. */
  #backendAuth(policy: BackendAuthInput, path: Path, translate: TranslatePolicies): unknown {
    const { oauthTokenExchange: exchange, crossAppAccess: access, ...others } = policy;
    const fill = (endpoint: Calling, ...at: readonly string[]): object =>
      this.#tokenEndpoint(endpoint, [...path, ...at], translate);
    return {
      ...others,
      ...(exchange !== undefined && { oauthTokenExchange: fill(exchange, "oauthTokenExchange") }),
      ...(access !== undefined && {
        crossAppAccess: withoutUndefined({
          ...access,
          ...Object.fromEntries(
            TOKEN_ENDPOINTS.map((name) => [name, fill(access[name], "crossAppAccess", name)] as const),
          ),
        }),
      }),
    };
  }

  #tokenEndpoint(endpoint: Calling, path: Path, translate: TranslatePolicies): object {
    const { host, service, backend, policies: own, ...others } = endpoint;
    const named = { host, service, backend };
    const target = this.find(named, path);
    const policies = this.callPolicies(named, own, false, path, translate, true);
    checkTunnel(target, policies ?? {}, path, this.#context.report);
    const timeout = policies?.http?.requestTimeout ?? TOKEN_TIMEOUT;
    return withoutUndefined({ target, policies, timeout, ...others });
  }

  /** One place of `requestMirror`, which may be a list of them. */
  #mirror(input: unknown, index: number, policy: unknown, path: Path, translate: TranslatePolicies): unknown {
    const { backend, percentage } = input as { readonly backend: Named; readonly percentage: number };
    const at = Array.isArray(policy) ? [...path, index, "backend"] : [...path, "backend"];
    const target = this.find(backend, at);
    return withoutUndefined({
      target,
      policies: this.callPolicies(backend, undefined, false, at, translate),
      percentage,
    });
  }

  /**
   * What holds for calls to a service: the policies of the named backend, or those that `policies[]` attaches to it, and
   * `own` of whoever asks, at `path.policies`. undefined = nothing. `forToken`: the service gives tokens, so its own
   * credentials must not take an exchange of tokens.
   */
  callPolicies(
    { service, backend }: Named,
    own: RawPolicies | undefined,
    grpc: boolean,
    path: Path,
    translate: TranslatePolicies,
    forToken = false,
  ): CallPolicies | undefined {
    const { report } = this.#context;
    const [field, name, attached] =
      backend !== undefined
        ? (["backend", backend, this.#attached.ofBackend(nameOf(backend))] as const)
        : service !== undefined
          ? (["service", service.name, this.#attached.ofService(service.name, service.port)] as const)
          : (["host", "", {}] as const);
    tellNotHolding(attached, name, [...path, field], report);
    if (forToken && exchangesTokens(attached)) {
      const message = `${name} itself gets its credentials by token exchange; give its host here instead`;
      report([...path, field], { message });
      return undefined;
    }
    const outer = this.#translate(`${field} ${name} ${service?.port}`, holding(attached), translate);
    const inner = own === undefined ? {} : translate(own, [...path, "policies"], this.#loud());
    if (grpc) reportForGrpc(outer, inner, [...path, field], [...path, "policies"], report);
    const policies = { ...outer, ...inner };
    return Object.keys(policies).length === 0 ? undefined : policies;
  }

  #loud(): CallContext {
    return { sources: this.#sources, calledTargets: this, report: this.#context.report, cel: this.#cel };
  }

  /** Many may name the same backend, whose files need to be read once. */
  #translate(key: string, input: RawPolicies, translate: TranslatePolicies): CallPolicies {
    let policies = this.#translated.get(key);
    if (policies === undefined) {
      policies = translate(input, [], this.withoutDiagnostics);
      this.#translated.set(key, policies);
    }
    return policies;
  }

  /** What a named backend has in the configuration. */
  policiesOf(backend: string | undefined): RawPolicies {
    return backend === undefined ? {} : this.#attached.ofBackend(nameOf(backend));
  }

  #named(backend: string): Backends[number] | undefined {
    return this.#backends.get(nameOf(backend));
  }

  find({ host, service, backend }: Named, path: Path): Target {
    const set = Object.entries({ host, service, backend }).filter(([, value]) => value !== undefined);
    if (set.length !== 1) {
      const message =
        set.length === 0
          ? "one of host, service, backend is required"
          : `only one of ${set.map(([name]) => name).join(", ")} may be set`;
      this.#context.report(path, { message });
      return { type: "invalid", reference: "" };
    }
    if (backend === undefined)
      return translateTarget({ host, service, backend, dynamic: undefined }, path, this.#context);
    const at = [...path, "backend"];
    const named = this.#named(backend);
    if (named === undefined) {
      const known = [...this.#backends.keys()].map((each) => `/${each}`);
      reportUnknown("backend", "backends", backend, known, at, this.#context);
      return { type: "invalid", reference: backend };
    }
    if (named.host !== undefined)
      // What is wrong with the backend is reported where it stands.
      return translateTarget({ ...named, service: undefined, backend: undefined }, at, {
        ...this.#context,
        report: () => {},
      });
    this.#context.report(at, {
      message: `${backend} has no fixed address, and a service needs one`,
      expected: "a backend with host",
    });
    return { type: "invalid", reference: backend };
  }
}

const silentReport: Report = () => {};

function nameOf(backend: string): string {
  return backend.replace(/^\//, "");
}

function withoutUndefined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}
