/**
 * Which policies apply to the gateway's own calls to a backend or service, such as an authorization service or a token endpoint:
 * those attached to it, as far as `calls` of each kind says, and those of the policy that makes the call.
 */
import type { Path } from "../base/paths.ts";
import { kindsOf } from "../policies/merge.ts";
import type { PolicyInputs } from "../policies/policy-set.ts";
import { KINDS } from "../policies/registry.ts";
import type { CallPolicies } from "../policies/schema/call.ts";
import type { CredentialTarget } from "../policies/schema/location.ts";
import type { Report } from "./problems/problem.ts";

/** Whether the credentials of a backend come from a token endpoint, which a token endpoint itself must not need. */
export function exchangesTokens({ backendAuth }: PolicyInputs): boolean {
  return backendAuth?.oauthTokenExchange !== undefined || backendAuth?.crossAppAccess !== undefined;
}

/** The policies of a backend that also apply to callouts, as each kind's `calls` says. */
export function policiesForCalls(policies: PolicyInputs): PolicyInputs {
  const applied: PolicyInputs = {};
  for (const kind of kindsOf(policies))
    if (KINDS[kind].calls === "apply") Object.assign(applied, { [kind]: policies[kind] });
  return applied;
}

/** Warns, at `path`, about policies of the backend `name` that do not apply to callouts to it. */
export function warnAboutUnappliedPolicies(policies: PolicyInputs, name: string, path: Path, report: Report): void {
  const unapplied = kindsOf(policies).filter((kind) => policies[kind] !== undefined && KINDS[kind].calls === "warn");
  if (unapplied.length === 0) return;
  const message = `${unapplied.sort().join(", ")} of ${name} applies to requests of clients, not to callouts`;
  report(path, { message, warning: true });
}

/**
 * Reports policies that cannot apply to gRPC calls: other versions than HTTP/2, credentials in a query, and transformations of
 * the body or of pseudo-headers. `outer` are those of the backend that is named at `outerPath`, `inner` those written at
 * `innerPath`.
 */
export function reportGrpcConflicts(
  outer: CallPolicies,
  inner: CallPolicies,
  outerPath: Path,
  innerPath: Path,
  report: Report,
): void {
  if (inner.http?.version === "HTTP/1.1")
    report([...innerPath, "http", "version"], { message: "gRPC requires HTTP/2; remove it" });
  if (inner.backendAuth !== undefined && usesQuery(inner.backendAuth))
    report([...innerPath, "backendAuth"], { message: NO_QUERY, expected: "a header" });
  else if (inner.backendAuth === undefined && outer.backendAuth !== undefined && usesQuery(outer.backendAuth))
    report(outerPath, { message: `its backendAuth cannot be used here: ${NO_QUERY}`, expected: "a header" });
  const { request } = inner.transformations ?? {};
  if (request?.body !== undefined)
    report([...innerPath, "transformations", "request", "body"], {
      message: "the body of a gRPC call cannot be transformed; remove it",
    });
  for (const field of ["add", "set"] as const)
    for (const name of Object.keys(request?.[field] ?? {}))
      if (name.startsWith(":"))
        report([...innerPath, "transformations", "request", field, name], {
          message: "gRPC determines the method and path; remove it",
        });
}

const NO_QUERY = "gRPC calls have no query to put a credential into";

function usesQuery(auth: NonNullable<CallPolicies["backendAuth"]>): boolean {
  const { passthrough, key, jwtSign, oauthTokenExchange: exchange, credentials } = auth;
  const places: readonly ({ readonly location: CredentialTarget } | undefined)[] = [
    passthrough,
    key,
    jwtSign,
    exchange && { location: exchange.authorizationLocation },
    ...credentials,
  ];
  return places.some((place) => place !== undefined && "queryParameter" in place.location);
}

/** A backend that policies may call, as it is written. */
interface CalledBackend {
  readonly name: string;
  /** Absent if it has no fixed address. */
  readonly host?: string | undefined;
  readonly policies?: PolicyInputs | undefined;
}

/** A policy that is attached to a backend or a service; policies of other targets do not apply to calls. */
interface AttachedInput {
  readonly target: {
    readonly backend?:
      | {
          readonly backend?: { readonly name: string; readonly namespace: string } | undefined;
          readonly service?:
            | { readonly hostname: string; readonly namespace: string; readonly port?: number | undefined }
            | undefined;
        }
      | undefined;
  };
  readonly policy: PolicyInputs;
}

/** The backends that policies may call, and the policies that are attached to those and to services, as users wrote them. */
export interface CalledInputs {
  readonly backends: readonly CalledBackend[];
  readonly policies: readonly AttachedInput[];
}

/** Policies that the configuration attaches to backends and services themselves, as users wrote them, for calls to these. */
export class AttachedPolicies {
  readonly #backends: ReadonlyMap<string, CalledBackend>;
  readonly #targeted: readonly AttachedInput[];

  constructor({ backends, policies }: CalledInputs) {
    this.#backends = new Map(backends.map((each) => [each.name, each]));
    this.#targeted = policies.filter(({ target }) => target.backend !== undefined);
  }

  /** Policies of a named backend; its own replace those of `policies[]`. */
  ofBackend(name: string): PolicyInputs {
    const targeted = this.#targeted.filter(({ target }) => {
      const backend = target.backend?.backend;
      return backend?.name === name && backend.namespace === "";
    });
    return merge([...targeted.map(({ policy }) => policy), this.#backends.get(name)?.policies]);
  }

  /** Policies of the service `<namespace>/<hostname>`; those for the port replace those for all ports. */
  ofService(key: string, port: number): PolicyInputs {
    const at = (wanted: number | undefined) =>
      this.#targeted.filter(({ target }) => {
        const service = target.backend?.service;
        return service !== undefined && `${service.namespace}/${service.hostname}` === key && service.port === wanted;
      });
    return merge([...at(undefined), ...at(port)].map(({ policy }) => policy));
  }
}

function merge(sets: readonly (PolicyInputs | undefined)[]): PolicyInputs {
  const merged: PolicyInputs = {};
  for (const set of sets) Object.assign(merged, set);
  return merged;
}
