import type { CallPolicies } from "../../policies/calls/schema.ts";
import { kindsOf } from "../../policies/merge.ts";
import type { PolicyInputs, PolicyKind, PolicySet } from "../../policies/policy-set.ts";
import type { CredentialTarget } from "../../policies/shared/credentials/location-schema.ts";
import type { Report } from "../parse/document.ts";
import type { Path } from "../parse/paths.ts";

/** Others that whoever attached them would expect to see in what is sent, or in whether it is sent. */
const MISSED = ["authorization", "extAuthz", "requestRedirect"] as const satisfies readonly PolicyKind[];

/** Whether the credentials of a backend come from a token endpoint. */
export function exchangesTokens({ backendAuth }: PolicyInputs): boolean {
  return backendAuth?.oauthTokenExchange !== undefined || backendAuth?.crossAppAccess !== undefined;
}

/** Kinds of a backend's policies that hold for calls of the gateway's own. */
const HELD: ReadonlySet<PolicyKind> = new Set<keyof CallPolicies>([
  "backendTLS",
  "http",
  "tcp",
  "backendTunnel",
  "backendAuth",
  "requestHeaderModifier",
  "transformations",
]);

export function holding(policies: PolicyInputs): PolicyInputs {
  const held: PolicyInputs = {};
  for (const kind of kindsOf(policies)) if (HELD.has(kind)) Object.assign(held, { [kind]: policies[kind] });
  return held;
}

/** The same once they are resolved. Conditions of backends' policies have been reported. */
export function callPoliciesOf(set: PolicySet): CallPolicies {
  const { transformations, ...others } = set;
  return transformations === undefined || "conditional" in transformations ? others : { ...set, transformations };
}

/** Warns of policies of `name`, at `path`, that are for requests of clients only. */
export function tellNotHolding(policies: PolicyInputs, name: string, path: Path, report: Report): void {
  const missed = MISSED.filter((kind) => policies[kind] !== undefined);
  if (missed.length === 0) return;
  const message = `${missed.join(", ")} of ${name} holds for requests of clients, not for calls of the gateway's own`;
  report(path, { message, warning: true });
}

/** What HTTP has and gRPC has not; `outer` belongs to what stands at `outerPath`, `inner` stands at `innerPath`. */
export function reportForGrpc(
  outer: CallPolicies,
  inner: CallPolicies,
  outerPath: Path,
  innerPath: Path,
  report: Report,
): void {
  if (inner.http?.version === "HTTP/1.1")
    report([...innerPath, "http", "version"], { message: "gRPC is spoken over HTTP/2 only; remove it" });
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
