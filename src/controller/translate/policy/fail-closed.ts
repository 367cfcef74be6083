/**
 * What takes the place of policies that are invalid. A policy that restricts access must not disappear because of a mistake in it:
 * requests are denied until it is corrected. Other kinds are left out.
 */
import type { FrontendInput } from "../../../config/schema/frontend.ts";
import { networkSchema } from "../../../policies/ext-authz/network-schema.ts";
import { mergePolicies } from "../../../policies/merge.ts";
import type { PolicyKind, PolicySet } from "../../../policies/policy-set.ts";
import type { FrontendField } from "../../crd/policy.ts";
import { NO_BACKEND } from "../../crd/references.ts";

/** Kinds without which requests would pass that should not, or reach backends without their credentials. */
const DENYING: readonly PolicyKind[] = [
  "authorization",
  "extAuthz",
  "jwtAuth",
  "basicAuth",
  "apiKey",
  "oidc",
  "csrf",
  "extProc",
  "remoteRateLimit",
  "backendAuth",
];

const CLOSING: readonly string[] = [
  ...DENYING,
  "backendTLS",
  "backendTunnel",
  "networkAuthorization",
  "networkExtAuthz",
];

/** No certificate has this name (RFC 6761, section 6.4), so that no connection can be verified. */
const NO_NAME = "policy.invalid";

/** Whether the place of one of these kinds is taken by something that denies, or that no connection passes. */
export function denies(invalid: readonly (PolicyKind | FrontendField)[]): boolean {
  return invalid.some((kind) => CLOSING.includes(kind));
}

/** `owner`: the object with the policies, for traces: `TracegatePolicy apps/login`. */
export function failClosed(set: PolicySet, invalid: readonly PolicyKind[], owner: string): PolicySet {
  const replaced: PolicySet = {
    ...set,
    ...(invalid.includes("backendTLS") && {
      backendTLS: { hostname: NO_NAME, subjectAltNames: [NO_NAME], insecure: false, insecureHost: false },
    }),
    ...(invalid.includes("backendTunnel") && { backendTunnel: { proxy: { type: "invalid", reference: "" } } }),
  };
  const denying = invalid.filter((kind) => DENYING.includes(kind));
  if (denying.length === 0) return replaced;
  const reason = `${denying.join(", ")} of ${owner} ${denying.length === 1 ? "is" : "are"} invalid, see its status`;
  return mergePolicies(replaced, {
    authorization: { rules: [{ mode: "require", expression: `fail(${JSON.stringify(reason)})` }] },
  });
}

/**
 * The same for connections of clients. Each field is replaced by one that rejects, not by another field: a narrower policy could
 * replace that one.
 */
export function failClosedFrontend(input: FrontendInput, invalid: readonly FrontendField[]): FrontendInput {
  const rules = input.networkAuthorization?.rules ?? [];
  return {
    ...input,
    ...(invalid.includes("networkAuthorization") && {
      networkAuthorization: { rules: [...rules, { require: "false" }] },
    }),
    ...(invalid.includes("networkExtAuthz") && { networkExtAuthz: NO_AUTHORIZATION_SERVICE }),
  };
}

/** A service that cannot be called, so that no connection is authorized. */
const NO_AUTHORIZATION_SERVICE = networkSchema.parse(NO_BACKEND);
