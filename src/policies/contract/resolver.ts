/**
 * What `resolve` of a policy may use of the configuration around it: files, documents and named services. Implemented in
 * `src/translation/policies.ts`, so policies do not depend on how configurations are read.
 */
import type { Milliseconds } from "../../base/durations.ts";
import type { BackendTunnel } from "../../upstream/settings/settings.ts";
import type { Target } from "../../upstream/settings/target.ts";
import type { CalledService, CalledServiceInput, CallPolicies } from "../schema/call.ts";
import type { Conditional } from "../schema/conditional.ts";
import type { FileName, TextSource } from "../schema/source.ts";
import type { TokenEndpointInput, TokenEndpointPolicies } from "../schema/token-endpoint.ts";
import type { BackendTunnelInput } from "../schema/upstream-settings.ts";
import type { ConfigPath } from "./policy-error.ts";

/** The ways to name a service, of which one is used. */
export type ServiceReference = Pick<CalledServiceInput, "host" | "service" | "backend">;

/** A service that is called, with its policies and the deadline of a call. */
export interface ResolvedCall<Policies> {
  readonly target: Target;
  readonly policies?: Policies | undefined;
  readonly timeout: Milliseconds;
}

/** Reads what a policy names. Paths are relative to the policy. What cannot be read or found is reported, and the method returns. */
export interface Resolver {
  /** A resolver whose paths begin at `path`. */
  within(...path: ConfigPath): Resolver;
  /** Runs with a resolver that reports nothing, for values that are already reported elsewhere. `invalid`: it found a mistake. */
  quietly<T>(run: (resolver: Resolver) => T): { readonly value: T; readonly invalid: boolean };
  report(path: ConfigPath, problem: { readonly message: string; readonly expected?: string }): void;
  /** The text; undefined if a file cannot be read or a URL has not been fetched yet. */
  text(path: ConfigPath, source: TextSource): string | undefined;
  file(path: ConfigPath, name: FileName): string | undefined;
  /** Reports a URL that is called while requests are served, such as a token endpoint, if its host may not be called. */
  called(path: ConfigPath, url: string): void;
  /** A document whose URL is not written in the configuration, such as a discovery document. */
  fetched(path: ConfigPath, url: string): string | undefined;
  /** The target of a callout by gRPC or HTTP, with the policies of its calls. */
  service(call: CalledServiceInput, protocol: "grpc" | "http"): ResolvedCall<CallPolicies>;
  tokenEndpoint(endpoint: TokenEndpointInput): ResolvedCall<TokenEndpointPolicies>;
  /** The target of mirrored requests, with the policies of the named backend. */
  copies(path: ConfigPath, reference: ServiceReference): CalledService;
  proxy(tunnel: BackendTunnelInput): BackendTunnel;
}

/** The configuration of a policy that calls one service, with the target in place of the service's name. */
export function resolveCall<Written extends CalledServiceInput>(
  written: Written,
  resolver: Resolver,
  protocol: "grpc" | "http",
): ResolvedCall<CallPolicies> & Omit<Written, keyof CalledServiceInput> {
  const { host, service, backend, policies, timeout, ...others } = written;
  return defined({ ...resolver.service({ host, service, backend, policies, timeout }, protocol), ...others });
}

/** Drops undefined fields, which dumps and comparisons would otherwise include. Returns the same object if every field is defined. */
export function defined<T extends object>(value: T): T {
  // `T` does not tell an absent field from an undefined one.
  for (const each of Object.values(value))
    if (each === undefined) return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
  return value;
}

/** Resolves a policy, or each of its alternatives. */
export function resolveEach<Written extends object, Config extends object>(
  written: Written | Conditional<Written>,
  resolver: Resolver,
  resolve: (written: Written, resolver: Resolver) => Config,
): Config | Conditional<Config> {
  if (!("conditional" in written)) return resolve(written, resolver);
  return {
    conditional: written.conditional.map((entry, i) => ({
      ...resolve(entry, resolver.within("conditional", i)),
      ...(entry.condition !== undefined && { condition: entry.condition }),
    })),
  };
}
