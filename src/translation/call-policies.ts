/**
 * Which policies apply to the gateway's own calls to a backend or service, such as an authorization service or a token endpoint:
 * those attached to it, as far as `calls` of each kind says, and those of the policy that makes the call.
 */
import type { Path } from "../base/paths.ts";
import { kindsOf } from "../policies/merge.ts";
import type { PolicyInputs, PolicyKind } from "../policies/policy-set.ts";
import { KINDS } from "../policies/registry.ts";
import type { CallPolicies } from "../policies/schema/call.ts";
import type { CredentialTarget } from "../policies/schema/location.ts";
import type { DnsSettings } from "../upstream/discovery/dns.ts";
import type { Report } from "./problems/problem.ts";

/** What the user wrote for a kind that levels replace: in the innermost of `levels` that has it. */
export function innermost<Kind extends PolicyKind>(levels: readonly PolicyInputs[], kind: Kind): PolicyInputs[Kind] {
  return levels.findLast((each) => each[kind] !== undefined)?.[kind];
}

/** Whether the credentials of a backend come from a token endpoint, which a token endpoint itself must not need. */
export function exchangesTokens(levels: readonly PolicyInputs[]): boolean {
  const { oauthTokenExchange, crossAppAccess } = innermost(levels, "backendAuth") ?? {};
  return oauthTokenExchange !== undefined || crossAppAccess !== undefined;
}

/** The kinds of a backend's policies that also apply to callouts. */
export function kindsForCalls(policies: PolicyInputs): readonly PolicyKind[] {
  return kindsOf(policies).filter((kind) => policies[kind] !== undefined && KINDS[kind].calls === "apply");
}

/** Warns, at `path`, about policies of the backend `name` that do not apply to callouts to it. */
export function warnAboutUnappliedPolicies(
  levels: readonly PolicyInputs[],
  name: string,
  path: Path,
  report: Report,
): void {
  const kinds = new Set(levels.flatMap((each) => kindsOf(each).filter((kind) => each[kind] !== undefined)));
  const unapplied = [...kinds].filter((kind) => KINDS[kind].calls === "warn").sort();
  if (unapplied.length === 0) return;
  const message = `${unapplied.join(", ")} of ${name} applies to requests of clients, not to callouts`;
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

/** What policies may call, and the policies attached to it as users wrote them, of several for one target the widest first. */
export interface CalledInputs {
  /** By name. */
  readonly backends: ReadonlyMap<string, CalledBackend>;
  /** By `serviceKey`. */
  readonly services: ReadonlyMap<string, readonly PolicyInputs[]>;
}

export interface CalledBackend {
  /** Absent if it has no fixed address, or several. */
  readonly host?: string | undefined;
  readonly dns?: DnsSettings | undefined;
  /** The hosts of a pool, whose key is `/<name>`; empty if a file lists them. Absent: the backend is not a pool. */
  readonly endpoints?: readonly string[] | undefined;
  /** The last are its own. */
  readonly policies: readonly PolicyInputs[];
}

/** Means a service `<namespace>/<hostname>`, or a port of it. */
export function serviceKey(service: string, port?: number): string {
  return port === undefined ? `service ${service}` : `service ${service} port ${port}`;
}
